-- delivery_hold_put: ?1 tenant, ?2 event id, ?3 destination, ?4 lane, ?5 aggregatetype, ?6 aggregateid,
-- ?7 version, ?8 state, ?9 attempts, ?10 failure, ?11 reason, ?12 why, ?13 next_us or null, ?14 since_us
insert into ibid_delivery_hold (
  tenant, event_id, destination, lane, aggregatetype, aggregateid, version, state, attempts, failure,
  reason, why, next_us, since_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
on conflict do update set
  state = excluded.state, attempts = excluded.attempts, failure = excluded.failure,
  reason = excluded.reason, why = excluded.why, next_us = excluded.next_us
