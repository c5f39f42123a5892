-- lane_list
select destination, lane, relay, token, instant(lease_until), instant(moved_at), delivered
from ibid.relay_lane
order by destination, lane
