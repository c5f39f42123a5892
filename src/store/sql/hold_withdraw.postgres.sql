-- hold_withdraw
-- By name, as all who withdraw lock them. What came early stands until the one before it was read, and what its lane has
-- not read yet until it has.
insert into ibid.delivery_hold as h (destination, tenant, event_id, lane, aggregatetype, aggregateid, version, state,
	attempts, reason, since)
select goal.destination, e.tenant, e.id, e.lane, e.aggregatetype, e.aggregateid, e.version, 'CANCELLED', 0, 'NOT_READ', :at
from ibid.event as e
cross join lateral string_to_table(e.headers::jsonb ->> 'deliver_to', ',') as goal(destination)
where e.tenant = :tenant and e.id = :event_id and e.topic is not null
	and not exists (select from ibid.delivery as d
		where d.tenant = e.tenant and d.event_id = e.id and d.destination = goal.destination)
order by goal.destination
on conflict (tenant, event_id, destination) do update set state = 'CANCELLED', next_at = null,
	passed = h.reason is distinct from 'PREDECESSOR_COMES'
where h.state not in ('SKIPPED', 'CANCELLED')
