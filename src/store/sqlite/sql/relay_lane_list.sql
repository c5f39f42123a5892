-- relay_lane_list: no parameters
select destination, lane, relay, token, coalesce(lease_until_us, 0), coalesce(moved_us, 0), delivered
from ibid_relay_lane
order by destination, lane
