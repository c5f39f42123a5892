-- command_list_all
-- The newest over all tenants: for operators only; reads the whole table.
select
{command}, a.body
from ibid.command as c
left join ibid.answer as a on a.tenant = c.tenant and a.command_id = c.id and a.attempts = c.attempts
where c.id < coalesce(:after::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
	and (:operation::text is null or c.operation = :operation)
	and (:key::text is null or c.key = :key)
	and (:state::text is null or c.state = :state)
	and (:client::text is null or c.client = :client)
order by c.id desc
limit :limit
