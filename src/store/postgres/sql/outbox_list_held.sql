-- outbox_list_held: $1 tenant, $2 destination, $3 state, $4 type, $5 aggregate type, $6 aggregate id,
--   $7 behind this event id, $8 and this destination of it (null: as in outbox_list); $9 limit
-- outbox_list for a state that only what is held has: few, and found from the hold.
select
	s.tenant, s.event_id, s.event_key, s.type, s.aggregate_type, s.aggregate_id, s.version, s.topic, s.destination, s.state,
	s.attempts, s.failure, s.reason, s.why, s.waits_for, (extract(epoch from s.next_at) * 1000000)::bigint,
	(extract(epoch from s.since) * 1000000)::bigint, s.relay, s.place, s.partition, s.position,
	(extract(epoch from s.published_at) * 1000000)::bigint, ibid_internal.microseconds(s.created_at)
from ibid.outbox_status as s
where s.state = $3
	and ($1::text is null or s.tenant = $1)
	and ($2::text is null or s.destination = $2)
	and ($4::text is null or s.type = $4)
	and ($5::text is null or s.aggregate_type = $5)
	and ($6::text is null or s.aggregate_id = $6)
	and ($7::uuid is null or s.event_id < $7 or (s.event_id = $7 and s.destination > $8::text))
order by s.event_id desc, s.destination
limit $9
