-- command_list_all
-- The newest of all tenants. There is no index on id alone (I9): the tenants are walked through the
-- index, the newest of each are taken, and the newest of those remain.
with recursive tenants (tenant) as (
	select min(tenant) from ibid_command
	union all
	select (select min(n.tenant) from ibid_command as n where n.tenant > tenants.tenant)
	from tenants
	where tenants.tenant is not null
)
select
{command}, a.body
from tenants
join ibid_command as c on c.tenant = tenants.tenant and c.id in (
	select i.id
	from ibid_command as i
	where i.tenant = tenants.tenant and i.id < coalesce(:after, 'g')
		and (:operation is null or i.operation = :operation)
		and (:key is null or i.key = :key)
		and (:state is null or i.state = :state)
		and (:client is null or i.client = :client)
	order by i.id desc
	limit :limit)
left join ibid_answer as a on a.tenant = c.tenant and a.command_id = c.id
order by c.id desc
limit :limit
