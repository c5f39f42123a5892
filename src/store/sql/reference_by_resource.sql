-- reference_by_resource
-- One row for each system that knows the resource.
select
{reference}
from ibid.external_reference as r
where r.tenant collate "POSIX" = :tenant and r.resource_type = :resource_type and r.resource_id = :resource_id
order by r.source_system
