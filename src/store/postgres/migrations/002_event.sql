-- 002_event: contracts of events, applied where a payload does not pass through libibid.
--
-- What libibid checks itself it checks by store/event_rule.c: the same rules, the same sentences.
-- One more error state:
--   IB013 an event violates its contract

-- ---- Contracts ----------------------------------------------------------------------------------

create type ibid.event_field as (pointer text, path text[]);
comment on type ibid.event_field is 'a JSON Pointer, and the path that #> takes';
create type ibid.event_terms as (
	version int, aggregate text, topic text, key_from text, key_path text[], required ibid.event_field[],
	max_bytes int, headers text
);
comment on type ibid.event_terms is 'what emit needs of the contract of an event';

create function ibid_internal.event_terms_in(contract json) returns ibid.event_terms
language plpgsql immutable as $$
declare
	terms ibid.event_terms;
begin
	select c.version, c.aggregate, c.topic, c.partition_key,
		case when left(c.partition_key, 1) = '/' then ibid_internal.pointer_path(c.partition_key) end,
		array(select row (r.pointer, ibid_internal.pointer_path(r.pointer))::ibid.event_field
			from json_array_elements_text(c.required) with ordinality as r(pointer, place) order by place),
		c.max_bytes, format('{"event_version":"%s"%s}', c.version,
			(select format(',"deliver_to":"%s"', string_agg(d.name, ',' order by d.place))
			from json_array_elements_text(c.deliver_to) with ordinality as d(name, place) having count(*) > 0))
	into terms
	from json_to_record(contract) as c(version int, aggregate text, topic text, partition_key text, required json,
		max_bytes int, deliver_to json);
	return terms;
end $$;
comment on function ibid_internal.event_terms_in(json) is 'what emit needs of the contract of an event';

create function ibid_internal.kept_event_terms(contract text) returns ibid.event_terms
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
	return ibid_internal.event_terms_in(contract::json);
exception when data_exception then
	return null; -- whoever uses it is told
end $$;
comment on function ibid_internal.kept_event_terms(text) is 'event_terms_in, for a contract that is installed';

alter table ibid.contract add column event_terms ibid.event_terms
	generated always as (case when kind = 'event' then ibid_internal.kept_event_terms(text) end) stored;

-- What a claim tells of the types that its command declares: A:1,B for an A under version 1 of its contract and
-- a B that has none. Null: it is not declared; 0: it has no contract. In SQL, so that the planner puts it into
-- the expressions that call it.
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

-- One look, by the primary key. Of a process that runs a command, its contracts are kept before it runs any.
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

-- append_event of schema 1, with the trace, and with where the event goes: no topic, where it goes nowhere.
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
	-- The head goes from v - 1 to v; an aggregate that nobody has seen is at 0. See 002_outbox for the rest.
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

-- What the binary of schema 1 calls: there is one way to append.
create or replace function ibid.append_event(of_tenant text, of_command uuid, ordinal int, aggregate_type text,
	aggregate_id text, event_type text, body text, wanted bigint, given_key text, correlation text,
	causation text, at timestamptz)
returns uuid language plpgsql as $$
begin
	return ibid.append_event(of_tenant, of_command, ordinal, aggregate_type, aggregate_id, event_type, body,
		wanted, given_key, correlation, causation, at, null, null, null, null, null);
end $$;
