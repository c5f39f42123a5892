-- audit_list
-- The newest first: ids are ordered by time.
select
{audit}
from ibid.audit as a
where a.tenant = :tenant
order by a.id desc
limit :limit
