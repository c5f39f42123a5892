-- token_put: $1 id, $2 tenant, $3 client, $4 roles, $5 digest, $6 created, $7 by, $8 expires or null
-- No row when the id is taken.
insert into ibid.token (id, tenant, client, roles, digest, created_at, created_by, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (id) do nothing
returning 1
