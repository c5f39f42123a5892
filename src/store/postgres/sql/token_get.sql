-- token_get: $1 id
select id, tenant, client, roles, encode(digest, 'hex'), (extract(epoch from created_at) * 1000000)::bigint,
	created_by, (extract(epoch from expires_at) * 1000000)::bigint,
	(extract(epoch from revoked_at) * 1000000)::bigint, revoked_by
from ibid.token where id = $1
