-- command_list_unknown
-- Commands that were staged and whose outcome nobody knows, the oldest first; along the index of leases, which
-- holds nothing that has an outcome: all of it is read, and sorted.
select
{command}
from ibid_command as c indexed by ibid_command_lease
where (c.state = 'IN_PROGRESS' or c.state = 'UNKNOWN') and c.state = 'UNKNOWN' and c.lease_token is not null
	and (:tenant is null or c.tenant = :tenant)
	and (:operation is null or c.operation = :operation)
	and (:after is null or c.id > :after)
order by c.id
limit :limit
