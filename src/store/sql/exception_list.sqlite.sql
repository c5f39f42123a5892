-- exception_list
-- The newest of a tenant, or of all. There is no index on id alone (I9): the tenants are walked through
-- the primary key, the newest of each are taken, and the newest of those remain. Ids start with a hex
-- digit, so 'g' stands for "from the newest".
with recursive tenants (tenant) as (
	select coalesce(:tenant, (select min(tenant) from ibid_exception))
	union all
	select (select min(n.tenant) from ibid_exception as n where n.tenant > tenants.tenant)
	from tenants
	where :tenant is null and tenants.tenant is not null
)
select
{exception}
from tenants
join ibid_exception as e on e.tenant = tenants.tenant and e.id in (
	select i.id
	from ibid_exception as i
	where i.tenant = tenants.tenant and i.id < coalesce(:after, 'g')
		and (:queue is null or i.queue = :queue)
		and (:state is null or i.state = :state)
		and (:owner is null or i.owner = :owner)
		and (:subject_type is null or i.subject_type = :subject_type)
		and (:subject_id is null or i.subject_id = :subject_id)
		and (:assignee is null or i.assignee = :assignee)
	order by i.id desc
	limit :limit)
order by e.id desc
limit :limit
