-- command_list_unknown: $1 tenant or null, $2 operation or null, $3 newer than this id or null, $4 limit
-- Commands that were staged and whose outcome nobody knows, the oldest first; along the index of leases, which holds
-- nothing that has an outcome: all of it is read, and sorted. The expressions keep the primary key from being taken
-- for it, along which all commands of a tenant would be read.
select
	c.tenant, c.operation, c.scope, c.key, c.id, c.state, c.scheme, c.contract_version,
	encode(c.fingerprint, 'hex'), c.linked, c.status, c.resource_type, c.resource_id, c.reason, c.text,
	c.audit_id, c.attempts, c.client, c.actor,
	(extract(epoch from c.created_at) * 1000000)::bigint,
	(extract(epoch from c.finished_at) * 1000000)::bigint,
	(extract(epoch from c.expires_at) * 1000000)::bigint,
	c.lease_token, (extract(epoch from c.lease_until) * 1000000)::bigint,
	false,
	c.correlation_id, c.causation_id, c.traceparent, c.tracestate,
	null::text
from ibid.command as c
where c.state = 'UNKNOWN' and c.lease_token is not null
	and ($1::text is null or c.tenant || '' = $1)
	and ($2::text is null or c.operation || '' = $2)
	and ($3::uuid is null or c.id > $3)
order by c.id
limit $4
