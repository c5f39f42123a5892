-- archive_leased: ?1 now
select count(*) from ibid_relay_lane where lease_until_us > ?1
