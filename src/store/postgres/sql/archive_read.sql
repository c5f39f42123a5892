-- archive_read: $1 from this id on, $2 before that one, $3 tenant and $4 id of the last one that was read, $5 at most
-- By tenant and id, as the key of the partition is ordered.
select page.tenant, page.id, ibid_internal.archive_line(page.tenant, page.id),
	(select count(*) from ibid.delivery as d where d.tenant = page.tenant and d.event_id = page.id)
from (select e.tenant, e.id from ibid.event as e
	where e.id >= $1 and e.id < $2 and (e.tenant, e.id) > ($3, $4)
	order by e.tenant, e.id
	limit $5) as page
order by page.tenant, page.id
