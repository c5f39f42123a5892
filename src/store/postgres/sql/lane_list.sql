-- lane_list: no parameters
select destination, lane, relay, token, (extract(epoch from lease_until) * 1000000)::bigint,
	(extract(epoch from moved_at) * 1000000)::bigint, delivered
from ibid.relay_lane
order by destination, lane
