-- lane_read: $1 lane, $2 destination, $3 cursor, $4 at most, $5 doubtful
-- A cursor is "<system identifier>;<snapshot>": what the snapshot sees was read. New is what this statement's own
-- snapshot sees, and that one did not: of transactions that were in progress then, and of those that began since. Where
-- not all of it is read it is cut behind a transaction (the ids of those that are in progress know no order, nor do
-- commits: hence a snapshot again, and not a number), and what was left is as if it were in progress.
--
-- Transaction ids mean nothing on another server: there it begins anew, and leaves out what has evidence. Events that were
-- restored there may even have ids that this server is giving, or has yet to give. Then a cursor has more parts:
-- "<system identifier>;<snapshot>;<id>" and maybe ";<id>". The third is the greatest id among them: until no snapshot
-- can confuse them with others, each event is looked up among the evidence. The fourth says that they are being read, in the
-- order of their ids, and which is the next; what is new since the snapshot comes after that.
--
-- The event's id; early, and the version that it comes behind; whether there is more; in the first row the new cursor;
-- whether something was withdrawn that this lane has yet to pass (one look into an index that is empty otherwise); the event.
-- Always one row, with no event where there is none.
with given as materialized (
	select its.system, pg_current_snapshot() as now, its.system = split_part($3, ';', 1) as known,
		(select e.xid from ibid.event as e
		where its.system <> split_part($3, ';', 1) and e.lane = $1::smallint and e.topic is not null
		order by e.xid desc limit 1) as greatest
	from (select system_identifier::text as system from pg_control_system()) as its
), place as materialized (
	select g.system, g.now, g.known, its.restored,
		case when g.known then nullif(split_part($3, ';', 2), '')::pg_snapshot
			when its.restored is not null then g.now else pg_snapshot '1:1:' end as seen,
		case when g.known then nullif(split_part($3, ';', 4), '')::xid8
			when its.restored is not null then xid8 '0' end as reads
	from given as g
	cross join lateral (select case when g.known then nullif(split_part($3, ';', 3), '')::xid8
			when g.greatest >= case when $3 = '' then pg_snapshot_xmax(g.now) else pg_snapshot_xmin(g.now) end
			then g.greatest end as restored) as its
), range as materialized (
	select coalesce(reads, pg_snapshot_xmax(seen)) as low,
		case when reads is null then pg_snapshot_xmax(now) else (restored::text::bigint + 1)::text::xid8 end as high
	from place
), ended as materialized (
	select x from place, pg_snapshot_xip(place.seen) as x
	where place.reads is null and pg_visible_in_snapshot(x, place.now)
), fresh as materialized (
	select * from (
		(select e.* from ended
		cross join lateral (select e.* from ibid.event as e -- offset 0: one look into the index for each
			where e.lane = $1::smallint and e.topic is not null and e.xid = ended.x offset 0) as e
		order by ended.x fetch first $4 rows with ties)
		union all
		(select e.* from ibid.event as e
		where e.lane = $1::smallint and e.topic is not null
			and e.xid >= (select range.low from range)
			and e.xid < (select range.high from range)
		order by e.xid fetch first $4 rows with ties)) as e
	order by e.xid fetch first $4 rows with ties
), edge as materialized (
	select count(*) as looked, count(*) >= $4::bigint as cut,
		(select f.xid from fresh as f order by f.xid desc limit 1) as last
	from fresh
), top as materialized (
	select case when place.reads is null
		then greatest((edge.last::text::bigint + 1)::text::xid8, pg_snapshot_xmax(place.seen))
		else (edge.last::text::bigint + 1)::text::xid8 end as xmax
	from edge, place
), rest as materialized (
	select x from place, edge, pg_snapshot_xip(place.seen) as x
	where edge.cut and not (x <= edge.last and pg_visible_in_snapshot(x, place.now))
	union all
	select x from place, edge, pg_snapshot_xip(place.now) as x
	where edge.cut and x >= pg_snapshot_xmax(place.seen) and x < edge.last
), next as materialized (
	select case when place.reads is not null then place.seen when not edge.cut then place.now else (
			coalesce((select r.x from rest as r order by r.x limit 1), top.xmax) || ':' || top.xmax || ':'
			|| coalesce((select string_agg(r.x::text, ',' order by r.x) from rest as r), ''))::pg_snapshot end as seen
	from place, edge, top
), told as (
	-- An id that this server has yet to give is of one that was restored, and read.
	select f.*, case when place.reads is null
		then f.follows < pg_snapshot_xmax(place.now) and not pg_visible_in_snapshot(f.follows, next.seen)
		-- Of what was restored all that is not read yet has a greater id. But what is new since may have a smaller one:
		-- then it is neither here nor there.
		else f.follows > case when edge.cut then edge.last else place.restored end or (
			select true from ibid.event as p
			where p.lane = $1::smallint and p.topic is not null and p.xid = f.follows and p.xid < place.reads
				and p.tenant = f.tenant and p.aggregatetype = f.aggregatetype and p.aggregateid = f.aggregateid
				and p.version < f.version and $2 = any (string_to_array(p.headers::json ->> 'deliver_to', ','))
				and (select true from ibid.delivery as d
					where d.tenant = p.tenant and d.event_id = p.id and d.destination = $2 limit 1) is null
				and (select true from ibid.delivery_hold as h
					where h.destination = $2 and h.tenant = p.tenant and h.event_id = p.id) is null
			limit 1) is not null end as early
	from fresh as f, next, place, edge
	where case when $5::boolean or place.restored is not null or not place.known and $3 <> '' then
		(select true from ibid.delivery as d
		where d.tenant = f.tenant and d.event_id = f.id and d.destination = $2 limit 1) is null
		and (select true from ibid.delivery_hold as h
			where h.tenant = f.tenant and h.event_id = f.id and h.destination = $2 and h.passed) is null
		else true end
)
select
	e.id, coalesce(e.early, false), case when e.early then (
		select p.version from ibid.event as p
		where p.lane = $1::smallint and p.topic is not null and p.xid = e.follows and p.tenant = e.tenant
			and p.aggregatetype = e.aggregatetype and p.aggregateid = e.aggregateid and p.version < e.version
		order by p.version desc limit 1) end,
	edge.cut or place.reads is not null,
	case when row_number() over (order by e.version, e.xid) = 1 then place.system || ';' || next.seen
		|| case when place.reads is not null and edge.cut then ';' || place.restored || ';' || top.xmax
			when place.restored >= pg_snapshot_xmin(next.seen) then ';' || place.restored else '' end end,
	(select true from ibid.delivery_hold as h
	where h.destination = $2 and h.lane = $1::smallint and h.state = 'CANCELLED' and not h.passed limit 1),
{event}
from place cross join edge cross join next cross join top left join told as e on true
order by e.version, e.xid
