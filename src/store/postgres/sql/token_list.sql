-- token_list: $1 tenant or null, $2 older than the token of this id or null, $3 limit
-- The newest first; ids tell nothing about age, but order those of one instant.
select t.id, t.tenant, t.client, t.roles, encode(t.digest, 'hex'),
	(extract(epoch from t.created_at) * 1000000)::bigint, t.created_by,
	(extract(epoch from t.expires_at) * 1000000)::bigint,
	(extract(epoch from t.revoked_at) * 1000000)::bigint, t.revoked_by
from ibid.token as t
where ($1::text is null or t.tenant = $1)
	and ($2::text is null
		or (t.created_at, t.id) < (select a.created_at, a.id from ibid.token as a where a.id = $2))
order by t.created_at desc, t.id desc
limit $3
