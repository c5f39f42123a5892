-- audit_list_command: $1 tenant, $2 command id, $3 limit
-- The collation chooses the index: see migration 001.
select
	id, command_id, tenant, operation, fact, outcome, contract_version, client, actor, resource_type,
	resource_id, correlation_id, causation_id, encode(fingerprint, 'hex'),
	(extract(epoch from at) * 1000000)::bigint
from ibid.audit
where tenant collate "POSIX" = $1 and command_id = $2
order by id desc
limit $3
