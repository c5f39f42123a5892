-- exception_measure: no parameters
-- Open work by owner, over all tenants: how much, and how much of it is late. Who has most comes first.
select e.owner, count(*), count(*) filter (where e.due_at < now())
from ibid.exception as e
where e.state = 'OPEN'
group by e.owner
order by count(*) desc, e.owner
