-- reference_by_external
-- One row at most.
select
{reference}
from ibid.external_reference as r
where r.tenant = :tenant and r.source_system = :source_system and r.external_id = :external_id
