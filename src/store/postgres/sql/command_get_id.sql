-- command_get_id: $1 tenant, $2 id
-- The whole record of one command. The collation chooses the index: see 001_baseline.sql.
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
	a.body
from ibid.command as c
left join ibid.answer as a
	on a.tenant = c.tenant and a.command_id = c.id and a.attempts = c.attempts
where c.tenant collate "POSIX" = $1 and c.id = $2
