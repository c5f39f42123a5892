-- reference_by_resource: ?1 tenant, ?2 resource type, ?3 resource id
-- One row for each system that knows the resource.
select tenant, source_system, external_id, resource_type, resource_id, command_id, at_us
from ibid_external_reference
where tenant = ?1 and resource_type = ?2 and resource_id = ?3
order by source_system
