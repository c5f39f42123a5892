-- outbox_scan_put: ?1 lane, ?2 up to which seq it is counted
insert into ibid_outbox_scan (lane, seq) values (?1, ?2)
on conflict do update set seq = excluded.seq
