-- group_free: $1 tenants, $2 operations, $3 scopes, $4 keys, as text[]
-- Fails, and keeps the scripts behind it from running, if one of these identities has a row. They are planned as they are
-- elsewhere.
select ibid.demand(not exists (
		select from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as each(tenant, operation, scope, key)
		cross join lateral (
			select from ibid.command as one
			where one.tenant = each.tenant and one.operation = each.operation and one.scope = each.scope
				and one.key = each.key
			offset 0
		) as used), 'IB008', 'ibid: a key was used before'),
	set_config('plan_cache_mode', null, true)
