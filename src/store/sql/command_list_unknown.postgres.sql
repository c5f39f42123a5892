-- command_list_unknown
-- Commands that were staged and whose outcome nobody knows, the oldest first; along the index of leases, which holds
-- nothing that has an outcome: all of it is read, and sorted. The expressions keep the primary key from being taken
-- for it, along which all commands of a tenant would be read.
select
{command}
from ibid.command as c
where c.state = 'UNKNOWN' and c.lease_token is not null
	and (:tenant::text is null or c.tenant || '' = :tenant)
	and (:operation::text is null or c.operation || '' = :operation)
	and (:after::uuid is null or c.id > :after)
order by c.id
limit :limit
