-- exception_list_open
-- The newest of those that are open, which are few: their index is read as a whole.
select
{exception}
from ibid_exception as e indexed by ibid_exception_open
where e.state = 'OPEN' and e.state = :state
	and (:tenant is null or e.tenant = :tenant)
	and (:queue is null or e.queue = :queue)
	and (:owner is null or e.owner = :owner)
	and (:subject_type is null or e.subject_type = :subject_type)
	and (:subject_id is null or e.subject_id = :subject_id)
	and (:assignee is null or e.assignee = :assignee)
	and (:after is null or e.id < :after)
order by e.id desc
limit :limit
