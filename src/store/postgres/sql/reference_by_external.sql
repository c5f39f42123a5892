-- reference_by_external: $1 tenant, $2 source system, $3 external id
-- One row at most.
select tenant, source_system, external_id, resource_type, resource_id, command_id,
	(extract(epoch from at) * 1000000)::bigint
from ibid.external_reference
where tenant = $1 and source_system = $2 and external_id = $3
