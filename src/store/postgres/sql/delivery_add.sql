-- delivery_add: $1 destination, $2 token; arrays, an element for each event that arrived: $3 tenants, $4 ids, $5 times,
--   $6 places, $7 partitions, $8 positions
-- Fails where one of them is there already: delivery_put is for that, and costs half as much again.
insert into ibid.delivery (tenant, event_id, destination, token, at, place, partition, position)
select tenant, event_id, $1, $2, at, place, partition, position
from unnest($3::text[], $4::uuid[], $5::timestamptz[], $6::text[], $7::int[], $8::bigint[])
	as each(tenant, event_id, at, place, partition, position)
