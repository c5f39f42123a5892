-- hold_of_event: $1 tenant, $2 event id
select destination, tenant, event_id, aggregatetype, aggregateid, version, state, attempts, failure, reason, why,
	(extract(epoch from next_at) * 1000000)::bigint, (extract(epoch from since) * 1000000)::bigint, passed
from ibid.delivery_hold
where tenant = $1 and event_id = $2 and state <> 'ELSEWHERE'
order by destination
