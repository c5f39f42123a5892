-- relay_forget: ?1 destination, ?2 now
-- Those that did not say again that they are there.
delete from ibid_relay where destination = ?1 and until_us <= ?2
