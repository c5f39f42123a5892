-- relay_lane_settle: ?1 destination, ?2 lane, ?3 cursor or null, ?4 lease (us; 0: as it is, -1: given up),
-- ?5 now, ?6 events that arrived
update ibid_relay_lane set
  relay = case when ?4 < 0 then null else relay end,
  lease_until_us = case when ?4 < 0 then null when ?4 > 0 then ?5 + ?4 else lease_until_us end,
  moved_us = case when ?3 <> cursor then ?5 else moved_us end,
  cursor = coalesce(?3, cursor),
  delivered = delivered + ?6
where destination = ?1 and lane = ?2
