-- token_get: ?1 id
select id, tenant, client, roles, digest, created_us, created_by, expires_us, revoked_us, revoked_by
from ibid_token where id = ?1
