-- audit_list_command: $1 tenant, $2 command id, $3 limit
-- The entry of an accepted intent has the id of its command.
select
	id, command_id, tenant, operation, fact, outcome, contract_version, client, actor, resource_type,
	resource_id, correlation_id, causation_id, traceparent, tracestate, encode(fingerprint, 'hex'),
	(extract(epoch from at) * 1000000)::bigint
from ibid.audit
where tenant = $1 and id = $2
order by id desc
limit $3
