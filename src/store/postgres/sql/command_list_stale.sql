-- command_list_stale: $1 tenant or null, $2 operation or null, $3 limit
-- Leases that have ended, by the server's clock; along the index of leases. Null never ends.
select
	c.tenant, c.operation, c.scope, c.key, c.id, c.state, c.scheme, c.contract_version,
	encode(c.fingerprint, 'hex'), c.linked, c.status, c.resource_type, c.resource_id, c.reason, c.text,
	c.audit_id, c.attempts, c.client, c.actor,
	(extract(epoch from c.created_at) * 1000000)::bigint,
	(extract(epoch from c.finished_at) * 1000000)::bigint,
	(extract(epoch from c.expires_at) * 1000000)::bigint,
	c.lease_token, (extract(epoch from c.lease_until) * 1000000)::bigint,
	true,
	c.correlation_id, c.causation_id, c.traceparent, c.tracestate,
	null::text
from ibid.command as c
where c.state = 'IN_PROGRESS' and c.lease_until < clock_timestamp()
	and ($1::text is null or c.tenant = $1)
	and ($2::text is null or c.operation = $2)
order by c.lease_until
limit $3
