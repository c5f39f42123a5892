-- outbox_get: ?1 tenant, ?2 event id; null for all of them: ?3 state, ?4 destination
-- One event toward each of its destinations, by their names.
select
  s.tenant, s.event_id, s.event_key, s.type, s.aggregate_type, s.aggregate_id, s.version, s.topic, s.destination, s.state,
  s.attempts, s.failure, s.reason, s.why, coalesce(s.waits_for, 0), coalesce(s.next_us, 0), coalesce(s.since_us, 0),
  s.relay, s.place, coalesce(s.partition, -1), coalesce(s.position, -1), coalesce(s.published_us, 0), s.created_us
from ibid_outbox_status as s
where s.tenant = ?1 and s.event_id = ?2
  and (?3 is null or s.state = ?3)
  and (?4 is null or s.destination = ?4)
order by s.destination
