-- evidence_put: ?1 tenant, ?2 command_id, ?3 fingerprint, ?4 client, ?5 actor, ?6 first_us, ?7 last_us
insert into ibid_evidence (tenant, command_id, fingerprint, client, actor, first_us, last_us, count)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1)
on conflict do update set
  count = count + 1,
  first_us = min(first_us, excluded.first_us),
  last_us = max(last_us, excluded.last_us)
