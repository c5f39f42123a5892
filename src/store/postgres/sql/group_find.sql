-- group_find: $1 tenants, $2 operations, $3 scopes, $4 keys, as text[]
-- What claim_find tells of one identity, for those of them that have a row; the last column is which.
select
{command},
	ibid.kept_body(c.tenant, c.id, c.attempts) as body,
	each.n - 1
from unnest($1::text[], $2::text[], $3::text[], $4::text[])
	with ordinality as each(tenant, operation, scope, key, n)
cross join lateral (
	select * from ibid.command as one
	where one.tenant = each.tenant and one.operation = each.operation and one.scope = each.scope
		and one.key = each.key
	offset 0
) as c
