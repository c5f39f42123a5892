-- exception_list
-- The newest first. Planned with its values: what is null drops out, so that one tenant is read along the primary key and
-- open items along their small index.
select
{exception}
from ibid.exception as e
where (:tenant::text is null or e.tenant = :tenant)
	and (:queue::text is null or e.queue = :queue)
	and (:state::text is null or e.state = :state)
	and (:owner::text is null or e.owner = :owner)
	and (:subject_type::text is null or e.subject_type = :subject_type)
	and (:subject_id::text is null or e.subject_id = :subject_id)
	and (:after::uuid is null or e.id < :after)
	and (:assignee::text is null or e.assignee = :assignee)
order by e.id desc
limit :limit
