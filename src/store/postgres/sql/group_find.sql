-- group_find: $1 tenants, $2 operations, $3 scopes, $4 keys, as text[]
-- What claim_find tells of one identity, for those of them that have a row; the last column is which.
select
	c.tenant, c.operation, c.scope, c.key, c.id, c.state, c.scheme, c.contract_version,
	encode(c.fingerprint, 'hex'), c.linked, c.status, c.resource_type, c.resource_id, c.reason, c.text,
	c.audit_id, c.attempts, c.client, c.actor,
	(extract(epoch from c.created_at) * 1000000)::bigint,
	(extract(epoch from c.finished_at) * 1000000)::bigint,
	(extract(epoch from c.expires_at) * 1000000)::bigint,
	c.lease_token, (extract(epoch from c.lease_until) * 1000000)::bigint,
	c.state = 'IN_PROGRESS' and c.lease_until < clock_timestamp(),
	c.correlation_id, c.causation_id, c.traceparent, c.tracestate,
	ibid.kept_body(c.tenant, c.id, c.attempts),
	each.n - 1
from unnest($1::text[], $2::text[], $3::text[], $4::text[])
	with ordinality as each(tenant, operation, scope, key, n)
cross join lateral (
	select * from ibid.command as one
	where one.tenant = each.tenant and one.operation = each.operation and one.scope = each.scope
		and one.key = each.key
	offset 0
) as c
