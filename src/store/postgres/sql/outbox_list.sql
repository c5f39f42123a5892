-- outbox_list: $1 tenant, $2 destination, $3 state, $4 type, $5 aggregate type, $6 aggregate id (null: all of them);
--   $7 behind this event id (null: from the newest), $8 and this destination of it (null: all of it); $9 limit
-- Newest first. There is no index on id alone (I9): tenants are walked along the primary key, the newest of each are
-- taken, and the newest of those remain. offset 0: the view is asked for one event at a time.
with recursive tenants (tenant) as (
	select coalesce($1::text, (select min(e.tenant) from ibid.event as e)) collate "C"
	union all
	select (select min(e.tenant) from ibid.event as e where e.tenant > t.tenant) from tenants as t
	where $1::text is null and t.tenant is not null
)
select
{outbox}
from tenants as t
cross join lateral (
	select s.* from ibid.event as e
	cross join lateral (
		select s.* from ibid.outbox_status as s
		where s.tenant = e.tenant and s.event_id = e.id
			and ($2::text is null or s.destination = $2)
			and ($3::text is null or s.state = $3)
		offset 0) as s
	where e.tenant = t.tenant and e.topic is not null
		and e.id <= coalesce($7::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
		and ($7::uuid is null or e.id < $7 or s.destination > $8::text)
		and ($4::text is null or e.type = $4)
		and ($5::text is null or e.aggregatetype = $5)
		and ($6::text is null or e.aggregateid = $6)
	order by e.id desc, s.destination
	limit $9) as s
order by s.event_id desc, s.destination
limit $9
