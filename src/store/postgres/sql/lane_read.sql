-- lane_read: $1 lane, $2 destination, $3 cursor, $4 at most, $5 doubtful
-- A cursor is "<system identifier>;<snapshot>": what the snapshot sees was read. New is what this statement's own
-- snapshot sees, and that one did not: of transactions that were in progress then, and of those that began since. Where
-- not all of it is read it is cut behind a transaction (the ids of those that are in progress know no order, nor do
-- commits: hence a snapshot again, and not a number), and what was left is as if it were in progress.
--
-- Transaction ids mean nothing on another server: there it begins anew, and leaves out what has evidence.
--
-- The columns of an event; early, and the version that it comes behind; how many were looked at; in the first row the new
-- cursor, and ids that this server has yet to give: null, where all is well. Always one row, with no event where there is
-- none.
with place as materialized (
	select its.system, pg_current_snapshot() as now, its.system = split_part($3, ';', 1) as known,
		case when its.system = split_part($3, ';', 1) then nullif(split_part($3, ';', 2), '')::pg_snapshot
			else pg_snapshot '1:1:' end as seen
	from (select system_identifier::text as system from pg_control_system()) as its
), ended as materialized (
	select x from place, pg_snapshot_xip(place.seen) as x where pg_visible_in_snapshot(x, place.now)
), fresh as materialized (
	select * from (
		(select e.* from ended
		cross join lateral (select e.* from ibid.event as e -- offset 0: one look into the index for each
			where e.lane = $1::smallint and e.topic is not null and e.xid = ended.x offset 0) as e
		order by ended.x fetch first $4 rows with ties)
		union all
		(select e.* from ibid.event as e
		where e.lane = $1::smallint and e.topic is not null
			and e.xid >= (select pg_snapshot_xmax(place.seen) from place)
			and e.xid < (select pg_snapshot_xmax(place.now) from place)
		order by e.xid fetch first $4 rows with ties)) as e
	order by e.xid fetch first $4 rows with ties
), edge as materialized (
	select count(*) as looked, count(*) >= $4::bigint as cut,
		(select f.xid from fresh as f order by f.xid desc limit 1) as last
	from fresh
), top as materialized (
	select greatest((edge.last::text::bigint + 1)::text::xid8, pg_snapshot_xmax(place.seen)) as xmax
	from edge, place
), rest as materialized (
	select x from place, edge, pg_snapshot_xip(place.seen) as x
	where edge.cut and not (x <= edge.last and pg_visible_in_snapshot(x, place.now))
	union all
	select x from place, edge, pg_snapshot_xip(place.now) as x
	where edge.cut and x >= pg_snapshot_xmax(place.seen) and x < edge.last
), next as materialized (
	select case when not edge.cut then place.now else (
			coalesce((select r.x from rest as r order by r.x limit 1), top.xmax) || ':' || top.xmax || ':'
			|| coalesce((select string_agg(r.x::text, ',' order by r.x) from rest as r), ''))::pg_snapshot end as seen
	from place, edge, top
), told as (
	select f.*, not pg_visible_in_snapshot(f.follows, next.seen) as early
	from fresh as f, next, place
	where case when $5::boolean or not place.known and $3 <> '' then
		(select true from ibid.delivery as d
		where d.tenant = f.tenant and d.event_id = f.id and d.destination = $2 limit 1) is null
		else true end
)
select
	f.id, f.command_id, f.tenant, f.aggregatetype, f.aggregateid, f.type, f.payload, f.version, f.key, f.ordinal,
	f.correlation_id, f.causation_id, f.traceparent, f.tracestate,
	(extract(epoch from f.created_at) * 1000000)::bigint, f.topic, f.partition_key, f.headers,
	coalesce(f.early, false), case when f.early then (
		select p.version from ibid.event as p
		where p.lane = $1::smallint and p.topic is not null and p.xid = f.follows and p.tenant = f.tenant
			and p.aggregatetype = f.aggregatetype and p.aggregateid = f.aggregateid and p.version < f.version
		order by p.version desc limit 1) end,
	edge.cut,
	case when row_number() over (order by f.version, f.xid) = 1 then place.system || ';' || next.seen end,
	case when not place.known then (
		select e.xid from ibid.event as e
		where e.lane = $1::smallint and e.topic is not null and e.xid >= pg_snapshot_xmax(place.now)
		order by e.xid limit 1) end
from place cross join edge cross join next left join told as f on true
order by f.version, f.xid
