-- relay_lane_holds: ?1 destination, ?2 lane, ?3 token
-- A row while nobody took the lane over, and it was not given up (I6).
select 1 from ibid_relay_lane
where destination = ?1 and lane = ?2 and token = ?3 and relay is not null
