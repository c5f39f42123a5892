-- command_list_stale
-- Leases that have ended, by the store's clock; along the index of leases. Null never ends.
select
{command}
from ibid.command as c
where c.state = 'IN_PROGRESS' and c.lease_until < clock_timestamp()
	and (:tenant::text is null or c.tenant = :tenant)
	and (:operation::text is null or c.operation = :operation)
order by c.lease_until
limit :limit
