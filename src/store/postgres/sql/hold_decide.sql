-- hold_decide: $1 tenant, $2 event id, $3 destination, $4 the state that it is to be in, $5 the state that it gets
-- It fails the transaction when it is in another one.
with decided as (
	update ibid.delivery_hold
	set state = $5, attempts = case when $5 = 'RELEASED' then 0 else attempts end, next_at = null,
		passed = $5 <> 'RELEASED'
	where tenant = $1 and event_id = $2 and destination = $3 and state = $4
	returning 1)
select ibid.demand(exists (select from decided), 'IB006', 'the event is not held so any more')
