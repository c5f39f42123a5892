-- hold_list: $1 destination, $2 lane
-- Early: the one that it comes behind neither arrived nor is held: it has yet
-- to be read. Arrived: it was on its way when it was cancelled. Then the hold and its event.
select
	coalesce(behind.version is not null and (select true from ibid.delivery as d where d.tenant = e.tenant
			and d.event_id = behind.id and d.destination = $1 limit 1) is null
		and (select true from ibid.delivery_hold as p where p.destination = $1 and p.tenant = e.tenant
			and p.event_id = behind.id) is null, false),
	behind.version,
	h.state = 'CANCELLED' and exists (select from ibid.delivery as d
		where d.tenant = h.tenant and d.event_id = h.event_id and d.destination = $1),
	h.state, h.attempts, h.failure, h.reason, h.why, instant(h.next_at), instant(h.since),
{event}
from ibid.delivery_hold as h
join ibid.event as e on e.tenant = h.tenant and e.id = h.event_id
left join lateral (
	select p.id, p.version from ibid.event as p
	where p.lane = e.lane and p.topic is not null and p.xid = e.follows and p.tenant = e.tenant
		and p.aggregatetype = e.aggregatetype and p.aggregateid = e.aggregateid and p.version < e.version
	order by p.version desc limit 1) as behind on true
where h.destination = $1 and h.lane = $2 and not h.passed
order by h.tenant, h.aggregatetype, h.aggregateid, h.version
