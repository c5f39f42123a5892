-- hold_of_event
select destination, tenant, event_id, aggregatetype, aggregateid, version, state, attempts, failure, reason, why,
	instant(next_at), instant(since), passed
from ibid.delivery_hold
where tenant = :tenant and event_id = :id and state <> 'ELSEWHERE'
order by destination
