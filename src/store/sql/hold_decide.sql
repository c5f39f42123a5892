-- hold_decide
-- demands one row: the event is not held so any more
update ibid.delivery_hold
set state = :to, attempts = case when :to = 'RELEASED' then 0 else attempts end, next_at = null, passed = :to <> 'RELEASED'
where tenant = :tenant and event_id = :event_id and destination = :destination and state = :from
