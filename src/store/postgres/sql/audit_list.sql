-- audit_list: $1 tenant, $2 limit
-- Newest first.
select
	id, command_id, tenant, operation, fact, outcome, contract_version, client, actor, resource_type,
	resource_id, correlation_id, causation_id, traceparent, tracestate, encode(fingerprint, 'hex'),
	(extract(epoch from at) * 1000000)::bigint
from ibid.audit
where tenant = $1
order by id desc
limit $2
