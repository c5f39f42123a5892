-- token_put
-- demands one row: there is a token of this id already
insert into ibid.token (id, tenant, client, roles, digest, created_at, created_by, expires_at)
values (:id, :tenant, :client, :roles, :digest, :created_at, :created_by, :expires_at)
on conflict (id) do nothing
