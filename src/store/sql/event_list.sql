-- event_list
-- The newest first. In SQLite one writer made seq the order of commits, and the plus keeps the planner from sorting all
-- events of the tenant: it reads from the end of the table instead.
select
{event}
from ibid.event as e
where e.tenant = :tenant -- sqlite: where +e.tenant = :tenant
order by e.id desc -- sqlite: order by e.seq desc
limit :limit
