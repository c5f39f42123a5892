-- outbox_list_held: ?1 state; null for all of them: ?2 tenant, ?3 destination, ?4 type, ?5 aggregate type, ?6 aggregate id;
-- ?7 behind this event id (null: from the newest), ?8 and this destination of it; ?9 at most
-- What is in a state that only what is held has: few, and found from the hold.
select
  s.tenant, s.event_id, s.event_key, s.type, s.aggregate_type, s.aggregate_id, s.version, s.topic, s.destination, s.state,
  s.attempts, s.failure, s.reason, s.why, coalesce(s.waits_for, 0), coalesce(s.next_us, 0), coalesce(s.since_us, 0),
  s.relay, s.place, coalesce(s.partition, -1), coalesce(s.position, -1), coalesce(s.published_us, 0), s.created_us
from ibid_outbox_status as s
where s.state = ?1
  and (?2 is null or s.tenant = ?2)
  and (?3 is null or s.destination = ?3)
  and (?4 is null or s.type = ?4)
  and (?5 is null or s.aggregate_type = ?5)
  and (?6 is null or s.aggregate_id = ?6)
  and (?7 is null or s.event_id < ?7 or (s.event_id = ?7 and s.destination > ?8))
order by s.event_id desc, s.destination
limit ?9
