-- exception_measure: ?1 now
-- Open work by owner, over all tenants: how much, and how much of it is late. Who has most comes first.
select owner, count(*), sum(due_us > 0 and due_us < ?1)
from ibid_exception
where state = 'OPEN'
group by owner
order by count(*) desc, owner
