-- command_list
-- The newest first, along the index (tenant, id), which the collation chooses.
select
{command}, a.body
from ibid.command as c
left join ibid.answer as a on a.tenant = c.tenant and a.command_id = c.id
	and a.attempts = c.attempts -- sqlite:
where c.tenant collate "POSIX" = :tenant
	and c.id < coalesce(:after::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
	and (:operation::text is null or c.operation = :operation)
	and (:key::text is null or c.key = :key)
	and (:state::text is null or c.state = :state)
	and (:client::text is null or c.client = :client)
order by c.id desc
limit :limit
