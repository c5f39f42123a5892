-- delivery_list: $1 tenant, $2 event id
-- Oldest first.
select tenant, event_id, destination, token, place, partition, position, (extract(epoch from at) * 1000000)::bigint
from ibid.delivery
where tenant = $1 and event_id = $2
order by at, destination, token
