-- relay_put: ?1 destination, ?2 relay, ?3 until
insert into ibid_relay (destination, relay, until_us)
values (?1, ?2, ?3)
on conflict do update set until_us = excluded.until_us
