-- 002_event: events have a lane and the trace of their command (W3C trace context); each is checked against its contract,
-- gets its topic and partition key, and is appended.
--
-- libibid checks its own events by store/event_rule.c: the same rules, the same messages.
-- One more error state:
--   IB013 an event violates its contract

-- Relays share the lanes of a destination. An aggregate keeps the lane of its first event; aggregates of schema 1 are in
-- lane 0.
alter table ibid.aggregate
	add column lane smallint not null default 0,
	add column xid xid8, -- the transaction of its newest event that has a topic; null: there is none
	add column before xid8; -- of the one before that
alter table ibid.event
	add column lane smallint not null default 0,
	add column follows xid8, -- the transaction of the one before it, in its aggregate, that has a topic; null: none
	add column traceparent text, -- of the request that sent the command: the span that a consumer continues
	add column tracestate text;
create index event_lane on ibid.event (lane, xid) where topic is not null;

create function ibid_internal.lane_of(tenant text, aggregate_type text, aggregate_id text) returns smallint
language sql immutable as $$
	select (hashtextextended(tenant || chr(10) || aggregate_type || chr(10) || aggregate_id, 0) & 1)::smallint
$$;
comment on function ibid_internal.lane_of(text, text, text) is 'the lane of a new aggregate';

-- `emits` lists the event types that a command declares: A:1,B for an A under version 1 of its contract and a B without
-- a contract. In SQL, so that the planner inlines it.
create function ibid_internal.declared_version(emits text, type text) returns int language sql immutable as $$
	select case when type = '' or translate(type, ',:', '') <> type then null
		when strpos(',' || emits, ',' || type || ':') > 0
			then split_part(split_part(',' || emits, ',' || type || ':', 2), ',', 1)::int
		when strpos(',' || emits || ',', ',' || type || ',') > 0 then 0 end
$$;
comment on function ibid_internal.declared_version(text, text) is
	'under which version of its contract a command emits an event; 0: it has none; null: it is not declared';

-- ---- Holding an event to it ---------------------------------------------------------------------

create function ibid_internal.event_violates(terms ibid.event_terms, event_type text, sentence text) returns void
language plpgsql immutable as $$
begin
	raise exception 'event % version %: %', event_type, terms.version, sentence using errcode = 'IB013';
end $$;
comment on function ibid_internal.event_violates(ibid.event_terms, text, text) is
	'fails with what an event violates of its contract';

create function ibid_internal.event_partition_key(terms ibid.event_terms, event_type text, payload jsonb) returns text
language plpgsql immutable as $$
declare
	value jsonb := payload #> terms.key_path;
	key text := payload #>> terms.key_path;
	wrong text;
begin
	if key is null then
		wrong := 'is missing';
	elsif jsonb_typeof(value) = 'string' then
		wrong := case when key = '' then 'is an empty text'
			when octet_length(key) > 255 then 'is longer than 255 bytes' end;
	elsif jsonb_typeof(value) <> 'number' then
		wrong := 'is neither a text nor an integer';
	elsif key::numeric <> trunc(key::numeric) or abs(key::numeric) >= 1e18 then
		wrong := 'is no integer of at most 18 digits';
	else
		key := trunc(key::numeric)::text; -- 100, 1e2 and 100.0 are one key
	end if;
	if wrong is not null then
		perform ibid_internal.event_violates(terms, event_type, format('its partition key %s %s', terms.key_from, wrong));
	end if;
	return key;
end $$;
comment on function ibid_internal.event_partition_key(ibid.event_terms, text, jsonb) is
	'the partition key that an event''s payload holds';

-- Returns its partition key.
create function ibid_internal.check_event(terms ibid.event_terms, of_tenant text, aggregate_type text, aggregate_id text,
	event_type text, body text)
returns text language plpgsql immutable as $$
declare
	looks constant boolean := cardinality(terms.required) > 0 or terms.key_path is not null;
	payload jsonb := case when looks then body::jsonb end;
	field ibid.event_field;
begin
	if aggregate_type <> terms.aggregate then
		perform ibid_internal.event_violates(terms, event_type, format('its aggregate is %s, and its contract says %s',
			left(aggregate_type, 80), terms.aggregate));
	elsif octet_length(body) > terms.max_bytes then
		perform ibid_internal.event_violates(terms, event_type, format('its payload has %s bytes, and its contract allows %s',
			octet_length(body), terms.max_bytes));
	end if;
	foreach field in array terms.required loop
		if payload #>> field.path is null then
			perform ibid_internal.event_violates(terms, event_type,
				format('%s is missing, which its contract requires', field.pointer));
		end if;
	end loop;
	return case when terms.key_path is not null then ibid_internal.event_partition_key(terms, event_type, payload)
		when terms.key_from = 'tenant' then of_tenant else aggregate_id end;
end $$;
comment on function ibid_internal.check_event(ibid.event_terms, text, text, text, text, text) is
	'holds an event to its contract, and gives its partition key';

-- One look-up by the primary key. A process stores its contracts before it runs commands.
create function ibid_internal.place_event(of_version int, of_tenant text, aggregate_type text, aggregate_id text,
	event_type text, body text, out topic text, out partition_key text, out headers text)
language plpgsql stable as $$
declare
	terms ibid.event_terms;
begin
	if of_version = 0 then
		return;
	end if;
	terms := (select coalesce(c.event_terms, ibid_internal.event_terms_in(c.text::json)) from ibid.contract as c
		where c.kind = 'event' and c.name = event_type and (of_version is null or c.version = of_version)
		order by c.version desc limit 1);
	if terms.version is not null then
		partition_key := ibid_internal.check_event(terms, of_tenant, aggregate_type, aggregate_id, event_type, body);
		topic := terms.topic;
		headers := terms.headers;
	elsif of_version is not null then
		raise exception 'event % version %: its contract is not kept', event_type, of_version
			using errcode = 'IB013', hint = 'install it with ibid contract apply DIR';
	end if;
end $$;
comment on function ibid_internal.place_event(int, text, text, text, text, text) is
	'holds an event to a version of its contract (null: the newest, if there is any; 0: none), and says where it goes';

-- ---- Appending ----------------------------------------------------------------------------------

-- append_event of schema 1, with the trace, the topic and the partition key; an event without a topic is not delivered.
create function ibid.append_event(of_tenant text, of_command uuid, ordinal int, aggregate_type text,
	aggregate_id text, event_type text, body text, wanted bigint, given_key text, correlation text,
	causation text, at timestamptz, of_traceparent text, of_tracestate text, to_topic text, by_key text,
	with_headers text)
returns uuid language plpgsql as $$
declare
	new_id uuid := overlay(of_command::text placing lpad(to_hex(ordinal), 4, '0') from 33);
	moved bigint;
	in_lane smallint;
	predecessor xid8;
	sent_by constant xid8 := case when to_topic is not null then pg_current_xact_id() end;
begin
	-- The head goes from v - 1 to v; an aggregate that nobody has seen is at 0. Lanes and transaction ids are explained above.
	if wanted is null or wanted = 1 then
		insert into ibid.aggregate as head (tenant, type, id, version, lane, xid)
		values (of_tenant, aggregate_type, aggregate_id, 1, ibid_internal.lane_of(of_tenant, aggregate_type, aggregate_id),
			sent_by)
		on conflict (tenant, type, id) do update set version = head.version + 1,
				xid = coalesce(sent_by, head.xid),
				before = case when sent_by is null then head.before else head.xid end
			where wanted is null
		returning head.version, head.lane, head.before into moved, in_lane, predecessor;
	else
		update ibid.aggregate as head set version = wanted, xid = coalesce(sent_by, head.xid),
			before = case when sent_by is null then head.before else head.xid end
		where head.tenant = of_tenant and head.type = aggregate_type and head.id = aggregate_id
			and head.version = wanted - 1
		returning head.version, head.lane, head.before into moved, in_lane, predecessor;
	end if;
	if moved is null then
		raise exception 'version % is not the next of % %', wanted, aggregate_type, aggregate_id
			using errcode = 'IB004';
	end if;
	if given_key is not null then
		insert into ibid.event_key as used (tenant, key, event_id)
		values (of_tenant, given_key, new_id)
		on conflict do nothing;
		if not found then
			raise exception 'the event key was used before' using errcode = 'IB005';
		end if;
	end if;
	insert into ibid.event as row (tenant, id, command_id, ordinal, aggregatetype, aggregateid, type,
		payload, version, key, correlation_id, causation_id, partition_key, created_at, traceparent, tracestate,
		topic, headers, lane, follows)
	values (of_tenant, new_id, of_command, ordinal, aggregate_type, aggregate_id, event_type, body,
		moved, coalesce(given_key, of_command || ':' || ordinal), correlation, causation,
		coalesce(by_key, aggregate_id), at, of_traceparent, of_tracestate, to_topic, coalesce(with_headers, '{}'),
		in_lane, case when sent_by is not null then predecessor end);
	return new_id;
end $$;
comment on function ibid.append_event(text, uuid, int, text, text, text, text, bigint, text, text, text,
	timestamptz, text, text, text, text, text) is 'appends one event to the outbox and moves its aggregate''s head';

-- The binary of schema 1 calls this one.
create or replace function ibid.append_event(of_tenant text, of_command uuid, ordinal int, aggregate_type text,
	aggregate_id text, event_type text, body text, wanted bigint, given_key text, correlation text,
	causation text, at timestamptz)
returns uuid language plpgsql as $$
begin
	return ibid.append_event(of_tenant, of_command, ordinal, aggregate_type, aggregate_id, event_type, body,
		wanted, given_key, correlation, causation, at, null, null, null, null, null);
end $$;

-- ---- Emit ---------------------------------------------------------------------------------------

-- In SQL, so that the planner puts it into the expressions that call it.
create function ibid_internal.is_event(ordinal int, declared boolean, aggregate_type text, aggregate_id text, body text,
	version bigint, given_key text)
returns boolean language sql immutable as $$
	select (declared and ordinal <= 65535 and octet_length(aggregate_type) between 1 and 255
		and octet_length(aggregate_id) between 1 and 255 and octet_length(body) <= 1048576
		and coalesce(octet_length(given_key), 1) between 1 and 255 and coalesce(version, 0) >= 0) is true
$$;
comment on function ibid_internal.is_event(int, boolean, text, text, text, bigint, text) is
	'is an event well formed and declared?';

create function ibid_internal.refuse_event(ordinal int, aggregate_type text, aggregate_id text, event_type text, body text,
	version bigint, given_key text)
returns void language plpgsql immutable as $$
begin
	raise exception 'emit: %', case
		when body is null then 'the payload is missing'
		when ordinal > 65535 then 'more than 65535 events in one command'
		when octet_length(body) > 1048576 then 'the payload is longer than 1 MiB'
		when (octet_length(aggregate_type) between 1 and 255
			and octet_length(aggregate_id) between 1 and 255) is not true
			then 'aggregate type and id are texts of 1 to 255 bytes'
		when octet_length(given_key) not between 1 and 255
			then 'the key is a text of 1 to 255 bytes, or null'
		when version < 0 then 'the version is a positive integer, or 0 or null for the next'
		when current_setting('ibid.emits', true) = '!' then 'the contract makes the command''s events itself'
		else format('%s is not declared under the contract''s emits', event_type) end
		using errcode = 'IB003';
end $$;
comment on function ibid_internal.refuse_event(int, text, text, text, text, bigint, text) is
	'fails with what is wrong with an event';

-- In a transaction that ibid owns, the claim has made settings, and the function runs with the caller's rights: a role
-- that forges the settings lacks the right to the tables. Otherwise the command is one that the caller began.
create or replace function ibid.emit_json(aggregate_type text, aggregate_id text, type text, payload text,
	version bigint, key text)
returns uuid language plpgsql as $$
declare
	ordinal int := nullif(current_setting('ibid.ordinal', true), '')::int + 1;
	trace text := current_setting('ibid.trace', true);
	declared int;
	place record;
	noted text;
begin
	if ordinal is null then
		return ibid_internal.emit_for_caller(aggregate_type, aggregate_id, type, payload, version, key, null);
	end if;
	declared := ibid_internal.declared_version(current_setting('ibid.emits'), type);
	if not ibid_internal.is_event(ordinal, declared is not null, aggregate_type, aggregate_id, payload, version, key) then
		perform ibid_internal.refuse_event(ordinal, aggregate_type, aggregate_id, type, payload, version, key);
	end if;
	-- by the contract that the process which runs the command has loaded
	place := ibid_internal.place_event(declared, current_setting('ibid.tenant'), aggregate_type, aggregate_id, type, payload);
	noted := set_config('ibid.ordinal', ordinal::text, true); -- an assignment, because PERFORM is a query
	return ibid.append_event(current_setting('ibid.tenant'), current_setting('ibid.command_id')::uuid,
		ordinal, aggregate_type, aggregate_id, type, payload, nullif(version, 0), key,
		nullif(current_setting('ibid.correlation_id'), ''),
		nullif(current_setting('ibid.causation_id'), ''), current_setting('ibid.now')::timestamptz,
		ibid_internal.traceparent_in(trace), ibid_internal.tracestate_in(trace), place.topic, place.partition_key,
		place.headers);
end $$;

-- One more parameter, for transactions that began several commands; it may be left out.
drop function ibid.emit(text, text, text, text, bigint, text);
drop function ibid.emit(text, text, text, jsonb, bigint, text);
drop function ibid.emit(text, text, text, json, bigint, text);

create function ibid.emit(aggregate_type text, aggregate_id text, type text, payload text,
	version bigint default null, key text default null, command_id uuid default null)
returns uuid language plpgsql as $$
begin -- the cast refuses what is not JSON
	if command_id is null and current_setting('ibid.ordinal', true) <> '' then
		return ibid.emit_json(aggregate_type, aggregate_id, type, payload::json::text, version, key);
	end if;
	return ibid_internal.emit_for_caller(aggregate_type, aggregate_id, type, payload::json::text, version, key, command_id);
end $$;
comment on function ibid.emit(text, text, text, text, bigint, text, uuid) is
	'appends an event for the running command; version: of the aggregate after it, 0 or null for the next; '
	'command_id: which one, where the transaction began several';

create function ibid.emit(aggregate_type text, aggregate_id text, type text, payload jsonb,
	version bigint default null, key text default null, command_id uuid default null)
returns uuid language plpgsql as $$
begin
	if command_id is null and current_setting('ibid.ordinal', true) <> '' then
		return ibid.emit_json(aggregate_type, aggregate_id, type, payload::text, version, key);
	end if;
	return ibid_internal.emit_for_caller(aggregate_type, aggregate_id, type, payload::text, version, key, command_id);
end $$;
comment on function ibid.emit(text, text, text, jsonb, bigint, text, uuid) is 'emit, with a jsonb payload';

create function ibid.emit(aggregate_type text, aggregate_id text, type text, payload json,
	version bigint default null, key text default null, command_id uuid default null)
returns uuid language plpgsql as $$
begin
	return ibid.emit(aggregate_type, aggregate_id, type, payload::text, version, key, command_id);
end $$;
comment on function ibid.emit(text, text, text, json, bigint, text, uuid) is 'emit, with a json payload';
