-- delivery_hold_put: ?1 tenant, ?2 event id, ?3 destination, ?4 lane, ?5 aggregatetype, ?6 aggregateid,
-- ?7 version, ?8 state, ?9 attempts, ?10 failure, ?11 reason, ?12 why, ?13 next_us or null, ?14 since_us,
-- ?15 passed, ?16 the state in which it was read or null: it is new
-- Only in the place of what was read: a person may have decided since. A new one may have been cancelled
-- before it was read: by now it is, and it is passed.
insert into ibid_delivery_hold (
  tenant, event_id, destination, lane, aggregatetype, aggregateid, version, state, attempts, failure,
  reason, why, next_us, since_us, passed)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15
where ?16 is null or exists (select 1 from ibid_delivery_hold
  where tenant = ?1 and event_id = ?2 and destination = ?3 and state = ?16)
on conflict do update set
  state = case when ?16 is null then state else excluded.state end,
  attempts = excluded.attempts, failure = excluded.failure, reason = excluded.reason, why = excluded.why,
  next_us = case when ?16 is null then next_us else excluded.next_us end,
  passed = case when ?16 is null then excluded.reason is not 'PREDECESSOR_COMES' else excluded.passed end
where ?16 is not null or (state = 'CANCELLED' and reason = 'NOT_READ')
