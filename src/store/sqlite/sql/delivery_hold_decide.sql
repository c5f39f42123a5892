-- delivery_hold_decide: ?1 tenant, ?2 event id, ?3 destination, ?4 the state that it is to be in, ?5 the one it gets
update ibid_delivery_hold
set state = ?5, attempts = case when ?5 = 'RELEASED' then 0 else attempts end, next_us = null,
  passed = ?5 <> 'RELEASED'
where tenant = ?1 and event_id = ?2 and destination = ?3 and state = ?4
