-- 002_outbox: relays, their lanes, and the delivery of events to destinations. One more error state:
--   IB014 the lane is held under another token

create table ibid.relay (
	destination text collate "C",
	relay text collate "C",
	seen_at timestamptz not null,
	primary key (destination, relay)
) with (fillfactor = 50);
comment on table ibid.relay is 'relays that are there: they share the lanes of a destination';

-- Updated about once a second by its holder.
create table ibid.relay_lane (
	destination text collate "C",
	lane smallint,
	relay text, -- null: nobody holds it
	token bigint not null,
	lease_until timestamptz,
	cursor text not null, -- '': at the beginning; see lane_read.sql
	moved_at timestamptz,
	delivered bigint not null,
	primary key (destination, lane)
) with (fillfactor = 50);
comment on table ibid.relay_lane is 'how far each lane of a destination got, and who holds it (I6)';

create table ibid.delivery (
	tenant text collate "C",
	event_id uuid,
	destination text collate "C",
	token bigint, -- of the lease under which it was sent
	at timestamptz,
	place text not null, -- topic, URL or file
	partition int,
	position bigint,
	primary key (tenant, event_id, destination, token, at)
) partition by range (event_id);
create table ibid.delivery_default partition of ibid.delivery default;
comment on table ibid.delivery is 'evidence: where and when an event arrived; inserted, never edited (I3)';
create trigger delivery_is_never_edited before update or delete on ibid.delivery
	for each row execute function ibid.refuse_edit();
create trigger delivery_is_never_emptied before truncate on ibid.delivery
	for each statement execute function ibid.refuse_edit();
create trigger delivery_is_never_emptied before truncate on ibid.delivery_default
	for each statement execute function ibid.refuse_edit();

-- Few rows: failed events, and the later events of their aggregates.
create table ibid.delivery_hold (
	destination text collate "C",
	tenant text collate "C",
	event_id uuid,
	lane smallint not null,
	aggregatetype text collate "C" not null,
	aggregateid text collate "C" not null,
	version bigint not null,
	state text collate "C" not null,
	attempts int not null,
	failure text,
	reason text,
	why text,
	next_at timestamptz,
	since timestamptz not null,
	passed boolean not null default false, -- SKIPPED or CANCELLED, and in nobody's way: it stays as evidence
	primary key (tenant, event_id, destination),
	constraint delivery_hold_state_check
		check (state in ('WAITS', 'FAILED', 'PARKED', 'RELEASED', 'SKIPPED', 'CANCELLED', 'ELSEWHERE')) -- the last: it is not for there, and came early
);
create index delivery_hold_lane on ibid.delivery_hold (destination, lane, tenant, aggregatetype, aggregateid, version)
	where not passed;
-- Read each time a lane is read, and almost always empty.
create index delivery_hold_withdrawn on ibid.delivery_hold (destination, lane) where state = 'CANCELLED' and not passed;
comment on table ibid.delivery_hold is
	'events that could not go to a destination, and those behind them in their aggregates (I5, I8)';

-- The first statement of a settlement. The row is locked, and written only if its cursor or lease changes: updating it for
-- each batch would leave dead versions that an old snapshot of another session keeps from being removed.
create function ibid_internal.keep_lane(of_destination text, of_lane int, of_token bigint, at_cursor text, arrived bigint,
	lease_us bigint)
returns void language plpgsql as $$
begin
	if at_cursor is null and lease_us = 0 then
		perform from ibid.relay_lane as l
		where l.destination = of_destination and l.lane = of_lane and l.token = of_token and l.relay is not null
		for share;
	else
		update ibid.relay_lane as l set
			cursor = coalesce(at_cursor, l.cursor),
			-- with the cursor's move: what is said again, because the answer was lost, is counted once
			delivered = l.delivered + case when at_cursor = l.cursor then 0 when at_cursor is null then 0 else arrived end,
			moved_at = case when at_cursor is null or at_cursor = l.cursor then l.moved_at
				else clock_timestamp() end,
			relay = case when lease_us >= 0 then l.relay end,
			lease_until = case when lease_us > 0 then clock_timestamp() + lease_us * interval '1 microsecond'
				when lease_us = 0 then l.lease_until end
		where l.destination = of_destination and l.lane = of_lane and l.token = of_token and l.relay is not null;
	end if;
	if not found then
		raise exception 'lane % of destination %: its lease has ended and another relay has taken it over', of_lane, of_destination using errcode = 'IB014';
	end if;
end $$;
comment on function ibid_internal.keep_lane(text, int, bigint, text, bigint, bigint) is
	'fails unless the lane is held under this token (I6); keeps its cursor and its lease, where they are given';
