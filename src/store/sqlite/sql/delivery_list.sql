-- delivery_list: ?1 tenant, ?2 event id
select tenant, event_id, destination, token, place, coalesce(partition, -1), coalesce(position, -1), at_us
from ibid_delivery
where tenant = ?1 and event_id = ?2
order by at_us, destination, token
