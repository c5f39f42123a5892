-- relay_count: ?1 destination, ?2 relay, ?3 now
-- How many relays there are, and how many lanes this one holds.
select
  (select count(*) from ibid_relay where destination = ?1),
  (select count(*) from ibid_relay_lane where destination = ?1 and relay = ?2 and lease_until_us > ?3)
