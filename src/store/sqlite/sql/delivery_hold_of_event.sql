-- delivery_hold_of_event: ?1 tenant, ?2 event id
select
  destination, tenant, event_id, aggregatetype, aggregateid, version, state, attempts, failure, reason, why,
  coalesce(next_us, 0), since_us, passed
from ibid_delivery_hold
where tenant = ?1 and event_id = ?2 and state <> 'ELSEWHERE'
order by destination
