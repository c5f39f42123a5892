-- delivery_list
-- The oldest first.
select d.tenant, d.event_id, d.destination, d.token, d.place, coalesce(d.partition, -1) as partition,
	coalesce(d.position, -1) as position, instant(d.at)
from ibid.delivery as d
where d.tenant = :tenant and d.event_id = :id
order by d.at, d.destination, d.token
