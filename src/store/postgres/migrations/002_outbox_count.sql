-- 002_outbox_count: how many events wait for each destination, from stored counters.
--
-- Commands do not update the counters. For each lane a row has the snapshot up to which its events were counted, and how
-- many of them name a destination (`written`); for each lane of a destination, the cursor of its relay up to which events
-- were counted, and their number (`passed`). A query first adds the new events to both, in bounded pieces and under a lock of
-- the lane's row, so that each event is counted once. Before its cursor a relay leaves only events that arrived or are
-- held, so the backlog is written - passed + the hold without skipped events.
--
-- A relay stores its cursor about once a second, after whole batches, so some events behind it have arrived already, or are
-- held. The first `width` events behind the cursor are therefore checked one by one. If all arrived events are among them
-- (unless a relay has larger batches or is faster), the backlog is exact in the query's snapshot; other arrived events count
-- as waiting until the cursor is stored. If retention dropped events that were counted as written and not yet as passed, they
-- count as waiting until fewer than `width` events are behind the cursor.
-- Snapshots and cursors are transaction ids: on another server, after a restored dump, the counters restart.

create table ibid.outbox_scan (
	lane smallint primary key,
	cursor text collate "C" not null -- as lane_read.sql has it
) with (fillfactor = 50);
comment on table ibid.outbox_scan is 'up to where the events of a lane are counted in outbox_count';

create table ibid.outbox_count (
	destination text collate "C",
	lane smallint,
	written bigint not null, -- events up to the cursor of outbox_scan
	behind text collate "C" not null, -- a cursor of the lane's relay
	passed bigint not null, -- events up to that
	primary key (destination, lane)
) with (fillfactor = 50);
comment on table ibid.outbox_count is 'how many events a lane has for a destination, and how many its relay has passed';

create function ibid_internal.cursor_snapshot(cursor text) returns pg_snapshot language sql stable as $$
	select case when split_part(cursor, ';', 1) = system_identifier::text
		then nullif(split_part(cursor, ';', 2), '')::pg_snapshot end
	from pg_control_system()
$$;
comment on function ibid_internal.cursor_snapshot(text) is
	'what a cursor of this server has seen; null: it is at the beginning, or of another server';

create function ibid_internal.names_destination(headers text, destination text) returns boolean language sql immutable as $$
	select strpos(',' || split_part(split_part(headers, '"deliver_to":"', 2), '"', 1) || ',', ',' || destination || ',') > 0
$$;
comment on function ibid_internal.names_destination(text, text) is 'is the event with these headers to go there?';

create function ibid_internal.outbox_edge(of_lane smallint, seen pg_snapshot, until pg_snapshot, most bigint) returns pg_snapshot
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
	edge bigint;
begin
	select e.xid::text::bigint into edge from ibid.event as e
	where e.lane = of_lane and e.topic is not null
		and e.xid >= pg_snapshot_xmax(seen) and e.xid < pg_snapshot_xmax(until)
	order by e.xid offset most - 1 limit 1;
	if edge is null then
		return until;
	end if;
	return (select format('%s:%s:%s', coalesce(min(x.id), edge + 1), edge + 1, string_agg(x.id::text, ',' order by x.id))
		from (select xip::text::bigint as id from pg_snapshot_xip(until) as xip) as x where x.id <= edge)::pg_snapshot;
end $$;
comment on function ibid_internal.outbox_edge(smallint, pg_snapshot, pg_snapshot, bigint) is
	'the later snapshot, or as much of it as about so many events of the lane are between it and the earlier one';

create function ibid_internal.outbox_news(of_lane smallint, seen pg_snapshot, until pg_snapshot)
returns table (destination text, events bigint)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
	-- by headers first: there are as many as there are contracts of events
	return query
	select d.name, sum(h.events)::bigint
	from (
		select e.headers, count(*) as events from ibid.event as e
		where e.lane = of_lane and e.topic is not null
			and e.xid >= pg_snapshot_xmax(seen) and e.xid < pg_snapshot_xmax(until)
			and pg_visible_in_snapshot(e.xid, until)
		group by e.headers
		union all
		select e.headers, count(*) from pg_snapshot_xip(seen) as ended
		cross join lateral (select e.headers from ibid.event as e -- offset 0: one look into the index for each
			where e.lane = of_lane and e.topic is not null and e.xid = ended offset 0) as e
		where pg_visible_in_snapshot(ended, until)
		group by e.headers) as h
	cross join unnest(string_to_array(split_part(split_part(h.headers, '"deliver_to":"', 2), '"', 1), ',')) as d(name)
	group by d.name;
end $$;
comment on function ibid_internal.outbox_news(smallint, pg_snapshot, pg_snapshot) is
	'how many events of the lane the later snapshot sees and the earlier does not, by where they are to go';

create function ibid_internal.count_passed(of_lane smallint, of_destination text, cursor text, until pg_snapshot, most bigint)
returns boolean language plpgsql as $$
declare
	near constant bigint := 1000;
	system constant text := split_part(cursor, ';', 1);
	at pg_snapshot := ibid_internal.cursor_snapshot(cursor);
	counted ibid.outbox_count;
	seen pg_snapshot;
	next pg_snapshot;
begin
	select * into counted from ibid.outbox_count as c where c.lane = of_lane and c.destination = of_destination;
	if counted.behind is not distinct from coalesce(system || ';' || at, '') or not found then
		return false;
	end if;
	if at is null then
		counted.behind := '';
		counted.passed := 0;
	elsif until is not null and ibid_internal.outbox_edge(of_lane, at, until, near)::text = until::text then
		-- little is behind the cursor: that is counted, and nothing need be known of what is before it
		counted.behind := system || ';' || at;
		counted.passed := counted.written - coalesce((select n.events from ibid_internal.outbox_news(of_lane, at, until) as n
			where n.destination = of_destination), 0);
	else
		seen := ibid_internal.cursor_snapshot(counted.behind);
		next := ibid_internal.outbox_edge(of_lane, coalesce(seen, '1:1:'), at, most);
		counted.behind := system || ';' || next;
		counted.passed := case when seen is null then 0 else counted.passed end
			+ coalesce((select n.events from ibid_internal.outbox_news(of_lane, coalesce(seen, '1:1:'), next) as n
				where n.destination = of_destination), 0);
	end if;
	update ibid.outbox_count as c set behind = counted.behind, passed = counted.passed
	where c.lane = of_lane and c.destination = of_destination;
	return coalesce(next::text <> at::text, false);
end $$;
comment on function ibid_internal.count_passed(smallint, text, text, pg_snapshot, bigint) is
	'bring forward what the relay has passed of a lane, whose row in outbox_scan is locked; until: null unless all that is '
	'written up to there is counted; true: there is more to count';

create function ibid_internal.count_lane(of_lane smallint, most bigint) returns boolean language plpgsql as $$
declare
	kept text;
	cursors jsonb;
	seen pg_snapshot;
	until pg_snapshot;
	upto pg_snapshot;
	relay record;
	more boolean := false;
begin
	insert into ibid.outbox_scan (lane, cursor) values (of_lane, '') on conflict do nothing;
	select s.cursor into kept from ibid.outbox_scan as s where s.lane = of_lane for update skip locked;
	if not found then
		return false; -- somebody is at it
	end if;
	seen := ibid_internal.cursor_snapshot(kept);
	if seen is null then
		delete from ibid.outbox_count as c where c.lane = of_lane;
		seen := '1:1:';
	end if;
	-- before the moment up to which is counted, so that none of them is ahead of it
	select coalesce(jsonb_object_agg(l.destination, l.cursor), '{}') into cursors from ibid.relay_lane as l
	where l.lane = of_lane;
	until := pg_current_snapshot();
	upto := ibid_internal.outbox_edge(of_lane, seen, until, most);
	insert into ibid.outbox_count as c (destination, lane, written, behind, passed)
	select n.destination, of_lane, n.events, '', 0 from ibid_internal.outbox_news(of_lane, seen, upto) as n
	on conflict (destination, lane) do update set written = c.written + excluded.written;
	if found or upto::text <> until::text then
		update ibid.outbox_scan as s set cursor = system_identifier || ';' || upto from pg_control_system()
		where s.lane = of_lane;
	end if;
	for relay in select c.key as destination, c.value as cursor from jsonb_each_text(cursors) as c loop
		more := ibid_internal.count_passed(of_lane, relay.destination, relay.cursor,
			case when upto::text = until::text then until end, most) or more;
	end loop;
	return more or upto::text <> until::text;
end $$;
comment on function ibid_internal.count_lane(smallint, bigint) is
	'bring the counters of a lane forward by about so many events; true: there are more';

create function ibid_internal.outbox_window(of_destination text, of_lane smallint, seen pg_snapshot, width bigint,
	out looked bigint, out named bigint, out waiting bigint, out oldest timestamptz, out last timestamptz)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
	with behind as materialized (
		select * from (
			select e.tenant, e.id, e.headers, e.created_at, e.xid from pg_snapshot_xip(seen) as ended
			cross join lateral (select e.* from ibid.event as e
				where e.lane = of_lane and e.topic is not null and e.xid = ended offset 0) as e
			union all
			(select e.tenant, e.id, e.headers, e.created_at, e.xid from ibid.event as e
			where e.lane = of_lane and e.topic is not null and e.xid >= pg_snapshot_xmax(seen)
				and e.xid < pg_snapshot_xmax(pg_current_snapshot())
			order by e.xid limit width)) as e
		order by e.xid limit width
	), its as materialized (
		select b.created_at,
			(select true from ibid.delivery as d where d.tenant = b.tenant and d.event_id = b.id
				and d.destination = of_destination limit 1) is null
			and (select true from ibid.delivery_hold as h where h.tenant = b.tenant and h.event_id = b.id
				and h.destination = of_destination) is null as waits
		from behind as b where ibid_internal.names_destination(b.headers, of_destination)
	)
	select (select count(*) from behind), count(*), count(*) filter (where its.waits),
		min(its.created_at) filter (where its.waits), (select max(b.created_at) from behind as b)
	into looked, named, waiting, oldest, last
	from its;
end $$;
comment on function ibid_internal.outbox_window(text, smallint, pg_snapshot, bigint) is
	'the first events of a lane behind a cursor: how many, how many are to go there, how many of those have neither arrived nor are held, since when';

create function ibid_internal.measure_outbox(lanes int, width bigint)
returns table (destination text, written bigint, delivered bigint, backlog bigint, held bigint, failed bigint, parked bigint,
	oldest timestamptz, leased bigint, moved_at timestamptz)
language plpgsql stable as $$
begin
	return query
	with counted as materialized (
		select l.lane::smallint, ibid_internal.cursor_snapshot(s.cursor) as seen from generate_series(0, lanes - 1) as l(lane)
		left join ibid.outbox_scan as s on s.lane = l.lane
	), each_lane as materialized (
		select w.destination, w.lane, sum(w.written)::bigint as written, sum(w.passed)::bigint as passed,
			max(w.behind) as behind
		from (
			select c.destination, c.lane, c.written, c.passed, c.behind from ibid.outbox_count as c
			join counted on counted.lane = c.lane and counted.seen is not null
			union all
			select n.destination, counted.lane, n.events, 0, '' from counted
			cross join ibid_internal.outbox_news(counted.lane, coalesce(counted.seen, '1:1:'), pg_current_snapshot()) as n
			union all
			select r.destination, r.lane, 0, 0, '' from ibid.relay_lane as r) as w
		group by w.destination, w.lane
	), behind as materialized (
		select e.destination, e.written, r.delivered, r.moved_at, f.oldest,
			r.relay is not null and r.lease_until > clock_timestamp() as leased,
			case when f.looked < width then f.waiting else greatest(f.waiting, e.written - (f.named - f.waiting)
				- case when ibid_internal.cursor_snapshot(e.behind) is null then 0 else e.passed end
				- coalesce((select n.events from ibid_internal.outbox_news(e.lane,
					coalesce(ibid_internal.cursor_snapshot(e.behind), '1:1:'), ibid_internal.cursor_snapshot(r.cursor)) as n
					where n.destination = e.destination), 0)) end as waiting,
			case when f.waiting > 0 then f.oldest when f.looked >= width then f.last end as since
		from each_lane as e
		left join ibid.relay_lane as r on r.destination = e.destination and r.lane = e.lane
		cross join ibid_internal.outbox_window(e.destination, e.lane, coalesce(ibid_internal.cursor_snapshot(r.cursor), '1:1:'), width) as f
	), holds as materialized (
		select h.destination, count(*) as held, count(*) filter (where h.state = 'FAILED') as failed,
			count(*) filter (where h.state = 'PARKED') as parked
		from ibid.delivery_hold as h
		where h.state in ('WAITS', 'FAILED', 'PARKED', 'RELEASED')
		group by h.destination
	), whole as (
		select b.destination, sum(b.written)::bigint as written, sum(b.delivered)::bigint as delivered,
			sum(b.waiting)::bigint as waiting, min(b.since) as since, count(*) filter (where b.leased) as leased,
			max(b.moved_at) as moved_at
		from behind as b group by b.destination
	)
	select w.destination, w.written, coalesce(w.delivered, 0), w.waiting + coalesce(h.held, 0), coalesce(h.held, 0),
		coalesce(h.failed, 0), coalesce(h.parked, 0), least(w.since, first.created_at), w.leased, w.moved_at
	from whole as w
	left join holds as h on h.destination = w.destination
	left join lateral (
		select e.created_at from (
			select o.tenant, o.event_id from ibid.delivery_hold as o -- the id of an event begins with its time
			where o.destination = w.destination and o.state in ('WAITS', 'FAILED', 'PARKED', 'RELEASED')
			order by o.event_id limit 1) as o
		join ibid.event as e on e.tenant = o.tenant and e.id = o.event_id) as first on true
	order by w.destination;
end $$;
comment on function ibid_internal.measure_outbox(int, bigint) is
	'how the outbox stands toward each destination that an event names or that has a relay';
