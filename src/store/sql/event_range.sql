-- event_range
-- The events of one command: their ids are a range.
select
{event}
from ibid.event as e
where e.tenant = :tenant and e.id between :first and :last
order by e.id
limit :limit
