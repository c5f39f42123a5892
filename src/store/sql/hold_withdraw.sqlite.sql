-- hold_withdraw
-- What came early stands until the one before it was read, and what its lane has not read yet until it has.
insert into ibid_delivery_hold (
  tenant, event_id, destination, lane, aggregatetype, aggregateid, version, state, attempts, reason, since_us)
select e.tenant, e.id, goal.value, e.lane, e.aggregatetype, e.aggregateid, e.version, 'CANCELLED', 0, 'NOT_READ', :at
from ibid_event as e
cross join json_each('["' || replace(json_extract(e.headers, '$.deliver_to'), ',', '","') || '"]') as goal
where e.tenant = :tenant and e.id = :event_id and e.topic is not null
  and not exists (select 1 from ibid_delivery as d
    where d.tenant = e.tenant and d.event_id = e.id and d.destination = goal.value)
on conflict do update set
  state = 'CANCELLED', next_us = null, passed = reason is not 'PREDECESSOR_COMES'
where state not in ('SKIPPED', 'CANCELLED')
