-- 002_archive: archived events: how they are removed and restored. One more error state:
--   IB017 an archived event can't be restored: the store has another in its place
--
-- A month is read, dropped and restored as a whole: the partition of ibid.event, and with it that of ibid.delivery.
-- This file runs before 002_outbox, which makes ibid.delivery: functions look up columns when they run.

create table ibid.archive (
	id bigint generated always as identity primary key,
	at timestamptz not null,
	file text not null, -- its name, in a directory that the store does not know
	range_from text not null,
	range_to text not null,
	first_id uuid not null,
	last_id uuid not null,
	events bigint not null,
	deliveries bigint not null,
	bytes bigint not null,
	sha256 text not null, -- of the file
	content_sha256 text not null -- of what it holds
);
comment on table ibid.archive is 'files that took the place of events, one row each: never edited (I3)';
create trigger archive_is_never_edited before update or delete on ibid.archive
	for each row execute function ibid.refuse_edit();
create trigger archive_is_never_emptied before truncate on ibid.archive
	for each statement execute function ibid.refuse_edit();

-- The next month that is over and old, also if some of its events are not done; no name: there is none.
create function ibid_internal.next_event_month(after text, old timestamptz, now timestamptz, out part text, out name text,
	out from_id uuid, out to_id uuid, out events bigint)
language plpgsql stable as $$
declare
	month timestamp;
	young boolean;
begin
	for part in
		select c.relname from pg_inherits as i
		join pg_class as c on c.oid = i.inhrelid
		where i.inhparent = 'ibid.event'::regclass and c.relname ~ '^event_[0-9]{6}$' and c.relname > after
		order by c.relname
	loop
		month := to_date(right(part, 6) || '01', 'YYYYMMDD');
		exit when (month + interval '1 month') at time zone 'UTC' > now;
		execute format('select exists (select from ibid.%I where created_at >= $1)', part) into young using old;
		continue when young;
		execute format('select count(*) from ibid.%I', part) into events;
		from_id := ibid_internal.first_id(month at time zone 'UTC');
		to_id := ibid_internal.first_id((month + interval '1 month') at time zone 'UTC');
		name := to_char(month, 'YYYYMMDD') || '-' || to_char(month + interval '1 month', 'YYYYMMDD');
		return;
	end loop;
	part := null;
end $$;
comment on function ibid_internal.next_event_month(text, timestamptz, timestamptz) is 'the next month of events that may go';

-- Done is an event that arrived, or that a person skipped or cancelled, at every destination it was written for.
create function ibid_internal.undone_events(low uuid, high uuid)
returns table (destination text, state text, events bigint, since timestamptz) language plpgsql stable as $$
begin
	return query
	select w.destination, w.state, count(*), min(w.created_at) from (
		select d.name collate "C" as destination, 'UNPUBLISHED' collate "C" as state, e.created_at
		from ibid.event as e
		cross join lateral unnest(string_to_array(e.headers::json ->> 'deliver_to', ',')) as d(name)
		where e.id >= low and e.id < high
			and not exists (select from ibid.delivery as v
				where v.event_id >= low and v.event_id < high
					and v.tenant = e.tenant and v.event_id = e.id and v.destination = d.name)
			and not exists (select from ibid.delivery_hold as h
				where h.tenant = e.tenant and h.event_id = e.id and h.destination = d.name)
		union all
		select h.destination, h.state, e.created_at
		from ibid.delivery_hold as h
		join ibid.event as e on e.tenant = h.tenant and e.id = h.event_id
		where h.event_id >= low and h.event_id < high and e.id >= low and e.id < high
			and h.state not in ('SKIPPED', 'CANCELLED')) as w
	group by w.destination, w.state
	order by w.destination, w.state;
end $$;
comment on function ibid_internal.undone_events(uuid, uuid) is 'what keeps events from being removed, by destination';

-- A line of an archive: an event, its evidence, and its state at destinations where it did not arrive.
create function ibid_internal.archive_line(of_tenant text, of_id uuid) returns text language plpgsql stable as $$
begin
	return (select row_to_json(line) from (
		select e.tenant, e.id, e.key, e.command_id, e.ordinal, e.type, e.aggregatetype, e.aggregateid, e.version,
			e.topic, e.partition_key, e.headers, e.payload, e.correlation_id, e.causation_id, e.traceparent,
			e.tracestate, ibid_internal.microseconds(e.created_at) as created_us, e.lane,
			e.xid::text as xid, e.follows::text as follows,
			(select coalesce(json_agg(row_to_json(each)), '[]') from (
				select d.destination, d.token, (extract(epoch from d.at) * 1000000)::bigint as at_us, d.place,
					d.partition, d.position
				from ibid.delivery as d where d.tenant = of_tenant and d.event_id = of_id
				order by d.destination, d.token, d.at) as each) as deliveries,
			(select coalesce(json_agg(row_to_json(each)), '[]') from (
				select h.destination, h.lane, h.state, h.attempts, h.failure, h.reason, h.why,
					(extract(epoch from h.next_at) * 1000000)::bigint as next_us,
					(extract(epoch from h.since) * 1000000)::bigint as since_us
				from ibid.delivery_hold as h where h.tenant = of_tenant and h.event_id = of_id
				order by h.destination) as each) as holds
		from ibid.event as e where e.tenant = of_tenant and e.id = of_id) as line);
end $$;
comment on function ibid_internal.archive_line(text, uuid) is 'an event as it is archived; null: there is none';

-- The digest changes when an event, a delivery or a hold is inserted, deleted or changed.
create function ibid_internal.event_seal(low uuid, high uuid) returns text language plpgsql stable as $$
begin
	return (select count(*) || ':' || coalesce(sum(hashtextextended(e::text, 0)::numeric), 0)
			from ibid.event as e where e.id >= low and e.id < high)
		|| '/' || (select count(*) || ':' || coalesce(sum(hashtextextended(d::text, 0)::numeric), 0)
			from ibid.delivery as d where d.event_id >= low and d.event_id < high)
		|| '/' || (select count(*) || ':' || coalesce(sum(hashtextextended(h::text, 0)::numeric), 0)
			from ibid.delivery_hold as h where h.event_id >= low and h.event_id < high);
end $$;
comment on function ibid_internal.event_seal(uuid, uuid) is 'a digest of events and their deliveries, to compare with a later one';

-- While it compares, other sessions may read the month but not write to it; only the drop itself blocks readers.
create function ibid_internal.drop_event_month(part text, low uuid, high uuid, seal text) returns void
language plpgsql set lock_timeout = '3s' as $$
declare
	evidence constant text := replace(part, 'event', 'delivery');
	has_evidence boolean;
begin
	perform pg_advisory_xact_lock(hashtextextended('ibid.make_partitions', 0));
	-- By a statement, which sees what was committed while we waited; to_regclass may remember what was there before.
	if not exists (select from pg_tables as t where t.schemaname = 'ibid' and t.tablename = part) then
		raise exception '% is gone: another run has dropped it', part using errcode = 'serialization_failure';
	end if;
	has_evidence := to_regclass(format('ibid.%I', evidence)) is not null;
	execute format('lock table ibid.%I in share row exclusive mode', part);
	if has_evidence then
		execute format('lock table ibid.%I in share row exclusive mode', evidence);
	end if;
	perform from ibid.delivery_hold as h where h.event_id >= low and h.event_id < high for update;
	if exists (select from ibid_internal.undone_events(low, high)) or ibid_internal.event_seal(low, high) <> seal then
		raise exception 'events of % changed while they were archived', part using errcode = 'serialization_failure';
	end if;
	delete from ibid.delivery_hold as h where h.event_id >= low and h.event_id < high;
	if has_evidence then
		execute format('drop table ibid.%I', evidence);
	end if;
	execute format('drop table ibid.%I', part);
end $$;
comment on function ibid_internal.drop_event_month(text, uuid, uuid, text) is
	'drops a month of events that are all done and still as they were when its seal was read';

-- ---- Back ---------------------------------------------------------------------------------------

create function ibid_internal.month_of(id uuid) returns timestamp language sql immutable as $$
	select date_trunc('month', timestamp 'epoch'
		+ ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint * interval '1 millisecond')
$$;
comment on function ibid_internal.month_of(uuid) is 'the month of a UUIDv7, in UTC';

-- Months that were dropped. As in make_partitions: no partition for a month that has rows in the default partition.
create function ibid_internal.make_event_months(first_id uuid, last_id uuid) returns void
language plpgsql set lock_timeout = '3s' as $$
declare
	month timestamp := ibid_internal.month_of(first_id);
	root text;
	part text;
begin
	perform pg_advisory_xact_lock(hashtextextended('ibid.make_partitions', 0));
	while month <= ibid_internal.month_of(last_id) loop
		foreach root in array array['event', 'delivery'] loop
			part := root || '_' || to_char(month, 'YYYYMM');
			continue when to_regclass('ibid.' || part) is not null;
			begin
				execute format('create table ibid.%I partition of ibid.%I for values from (%L) to (%L)', part, root,
					ibid_internal.first_id(month at time zone 'UTC'),
					ibid_internal.first_id((month + interval '1 month') at time zone 'UTC'));
				execute format('create trigger %I before truncate on ibid.%I for each statement
					execute function ibid.refuse_edit()', root || '_is_never_emptied', part);
			exception when check_violation then
				raise notice 'no partition for %: rows of that month are in the default partition', month;
			end;
		end loop;
		month := month + interval '1 month';
	end loop;
end $$;
comment on function ibid_internal.make_event_months(uuid, uuid) is 'makes the partitions that restored events go to';

-- An event keeps its transaction id, which is before every cursor, so relays do not send it again. The id of another
-- server (or one that this server has not assigned yet) has no meaning here: such events get 3, the lowest id, which is
-- before every cursor, too. A relay that leases a lane anew, without a cursor, skips events with evidence or a hold.
create function ibid_internal.restore_events(lines text[], system text, out restored bigint, out present bigint)
language plpgsql as $$
declare
	home constant boolean := system = (select system_identifier::text from pg_control_system());
	top constant xid8 := pg_snapshot_xmax(pg_current_snapshot());
	line text;
	given json;
	found_line text;
	known boolean;
begin
	restored := 0; present := 0;
	foreach line in array lines loop
		given := line;
		found_line := ibid_internal.archive_line(given ->> 'tenant', (given ->> 'id')::uuid);
		if found_line::jsonb - '{xid,follows}'::text[] <> line::jsonb - '{xid,follows}'::text[] then
			raise exception 'event % of tenant % is in the store already, and not as it was archived',
				given ->> 'id', given ->> 'tenant' using errcode = 'IB017';
		end if;
		if found_line is not null then
			present := present + 1;
			continue;
		end if;
		known := home and (given ->> 'xid')::xid8 < top;
		insert into ibid.event (tenant, id, key, command_id, ordinal, type, aggregatetype, aggregateid, version, topic,
			partition_key, headers, payload, correlation_id, causation_id, traceparent, tracestate, created_at, lane,
			xid, follows)
		values (given ->> 'tenant', (given ->> 'id')::uuid, given ->> 'key', (given ->> 'command_id')::uuid,
			(given ->> 'ordinal')::int, given ->> 'type', given ->> 'aggregatetype', given ->> 'aggregateid',
			(given ->> 'version')::bigint, given ->> 'topic', given ->> 'partition_key', given ->> 'headers',
			given ->> 'payload', given ->> 'correlation_id', given ->> 'causation_id', given ->> 'traceparent',
			given ->> 'tracestate',
			timestamptz 'epoch' + (given ->> 'created_us')::bigint * interval '1 microsecond',
			(given ->> 'lane')::smallint, case when known then (given ->> 'xid')::xid8 else '3'::xid8 end,
			case when known then (given ->> 'follows')::xid8 end);
		insert into ibid.delivery (tenant, event_id, destination, token, at, place, partition, position)
		select given ->> 'tenant', (given ->> 'id')::uuid, d ->> 'destination', (d ->> 'token')::bigint,
			timestamptz 'epoch' + (d ->> 'at_us')::bigint * interval '1 microsecond', d ->> 'place',
			(d ->> 'partition')::int, (d ->> 'position')::bigint
		from json_array_elements(given -> 'deliveries') as d
		on conflict do nothing;
		insert into ibid.delivery_hold (tenant, event_id, aggregatetype, aggregateid, version, destination, lane, state,
			attempts, failure, reason, why, next_at, since)
		select given ->> 'tenant', (given ->> 'id')::uuid, given ->> 'aggregatetype', given ->> 'aggregateid',
			(given ->> 'version')::bigint, h ->> 'destination', (h ->> 'lane')::smallint, h ->> 'state',
			(h ->> 'attempts')::int, h ->> 'failure', h ->> 'reason', h ->> 'why',
			timestamptz 'epoch' + (h ->> 'next_us')::bigint * interval '1 microsecond',
			timestamptz 'epoch' + (h ->> 'since_us')::bigint * interval '1 microsecond'
		from json_array_elements(given -> 'holds') as h
		on conflict do nothing;
		restored := restored + 1;
	end loop;
end $$;
comment on function ibid_internal.restore_events(text[], text) is
	'puts archived events back, with their evidence; what is there already is left; heads of aggregates are not moved';
