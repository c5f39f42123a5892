-- relay_lane_take: ?1 destination, ?2 relay, ?3 now, ?4 leased until, ?5 lanes at most
-- Each under a token that is greater than any before it (I6).
update ibid_relay_lane set relay = ?2, lease_until_us = ?4, token = token + 1
where destination = ?1 and lane in (
  select lane from ibid_relay_lane
  where destination = ?1 and (relay is null or lease_until_us <= ?3)
  order by lane limit ?5)
returning lane, token, cursor
