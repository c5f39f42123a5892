-- outbox_get: $1 tenant, $2 event id
-- One event toward each of its destinations, by their names.
select
	s.tenant, s.event_id, s.event_key, s.type, s.aggregate_type, s.aggregate_id, s.version, s.topic, s.destination, s.state,
	s.attempts, s.failure, s.reason, s.why, s.waits_for, (extract(epoch from s.next_at) * 1000000)::bigint,
	(extract(epoch from s.since) * 1000000)::bigint, s.relay, s.place, s.partition, s.position,
	(extract(epoch from s.published_at) * 1000000)::bigint, ibid_internal.microseconds(s.created_at)
from ibid.outbox_status as s
where s.tenant = $1 and s.event_id = $2
order by s.destination
