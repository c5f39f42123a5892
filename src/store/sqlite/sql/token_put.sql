-- token_put: ?1 id, ?2 tenant, ?3 client, ?4 roles, ?5 digest, ?6 created, ?7 by, ?8 expires or 0
-- No row when the id is taken.
insert into ibid_token (id, tenant, client, roles, digest, created_us, created_by, expires_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
on conflict (id) do nothing
