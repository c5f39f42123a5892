-- audit_of_command
-- The entry of an accepted intent has the id of its command.
select
{audit}
from ibid.audit as a
where a.tenant = :tenant and a.id = :id
limit :limit
