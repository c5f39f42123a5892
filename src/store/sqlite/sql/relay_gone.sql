-- relay_gone: ?1 destination, ?2 relay
delete from ibid_relay where destination = ?1 and relay = ?2
