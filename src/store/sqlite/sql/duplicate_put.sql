-- duplicate_put: ?1 tenant, ?2 command_id, ?3 first_us, ?4 last_us, ?5 count, ?6 unlisted
insert into ibid_duplicate (tenant, command_id, first_us, last_us, count, unlisted)
values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict do update set
  first_us = min(first_us, excluded.first_us), last_us = max(last_us, excluded.last_us),
  count = count + excluded.count, unlisted = unlisted + excluded.unlisted
