-- 001_baseline: schema 1: commands, their outbox, their audit trail, and what handlers call in SQL.
--
-- Stores are upgraded from this schema, so it stays as it is: what later schemas add is in their files.
--
-- Runs in one transaction. Key tables are narrow and unpartitioned, so that uniqueness is global;
-- answers, events and audit entries are partitioned by UUIDv7, so that retention drops partitions.
-- What is ibid's is written with its schema. What is PostgreSQL's is not: pg_catalog comes first unless
-- a search_path says otherwise, and whoever sets one that does harms only their own transaction.
-- Keys are compared byte by byte (collate "C"): faster, and no upgrade of the operating system's
-- locales can leave their indexes out of order.
-- Where a table has a second index that starts with the tenant, that one has the collation "POSIX",
-- which compares alike but is another: so a look-up by the primary key can't be planned over the
-- second index, and the other way round. Measured: on a new, still empty table both cost the same to
-- the planner, it chose the wrong one, and the prepared plan read all rows of the tenant per claim.
-- Error states that ibid's functions raise:
--   IB001 the command is rejected   IB002 the handler ended the transaction   IB003 wrong use of emit
--   IB004 not the next version      IB005 the event key was used before       IB006 lost a race
--   IB007 a row that is never edited

create schema ibid;
comment on schema ibid is 'ibid: one accepted outcome, or one controlled rejection, per intent';

-- ---- Set-up -------------------------------------------------------------------------------------

create table ibid.schema_version (
	version int primary key,
	name text not null,
	at timestamptz not null default clock_timestamp()
);
comment on table ibid.schema_version is 'migrations that were run';

create table ibid.schema_file (
	name text collate "C" primary key,
	digest bytea not null,
	at timestamptz not null
);
comment on table ibid.schema_file is 'schema files of the contract directory that were run, once each';

create table ibid.contract (
	kind text collate "C",
	name text collate "C",
	version int,
	digest bytea not null,
	text text not null,
	at timestamptz not null,
	primary key (kind, name, version)
);
comment on table ibid.contract is 'contract versions in use: a retry is judged under the version on its row';

-- ---- Commands -----------------------------------------------------------------------------------

create table ibid.command (
	tenant text collate "C",
	operation text collate "C",
	scope text collate "C",
	key text collate "C",
	id uuid not null,
	state text not null,
	scheme int not null,
	contract_version int not null,
	fingerprint bytea not null,
	linked boolean not null,
	status int not null,
	resource_type text,
	resource_id text,
	reason text,
	text text,
	audit_id uuid,
	attempts int not null,
	client text,
	actor text,
	created_at timestamptz not null,
	finished_at timestamptz,
	expires_at timestamptz,
	constraint command_pkey primary key (tenant, operation, scope, key),
	constraint command_state_check check
		(state in ('ACCEPTED', 'IN_PROGRESS', 'COMPLETED', 'REJECTED', 'FAILED', 'UNKNOWN')),
	constraint command_audit_check check ((state = 'COMPLETED') = (audit_id is not null))
);
create unique index command_tenant_id_key on ibid.command (tenant collate "POSIX", id);
comment on table ibid.command is
	'one row per intent; the primary key is the arbiter (I2). status 0: none kept';

create table ibid.answer (
	tenant text collate "C",
	command_id uuid,
	attempts int, -- the run that gave it: an answer is inserted, never edited
	body text not null,
	primary key (tenant, command_id, attempts)
) partition by range (command_id);
create table ibid.answer_default partition of ibid.answer default;
comment on table ibid.answer is 'bodies given back to duplicates, where the contract keeps them';

create function ibid.kept_body(of_tenant text, of_command uuid, of_attempts int) returns text
language plpgsql stable as $$
begin
	return (select body from ibid.answer
		where tenant = of_tenant and command_id = of_command and attempts = of_attempts);
end $$;
comment on function ibid.kept_body(text, uuid, int) is 'the body that a run of a command left, if any';

create table ibid.evidence (
	tenant text collate "C",
	command_id uuid,
	fingerprint bytea,
	client text collate "C",
	actor text collate "C",
	first_at timestamptz not null,
	last_at timestamptz not null,
	count bigint not null,
	primary key (tenant, command_id, fingerprint, client, actor)
) with (fillfactor = 80);
comment on table ibid.evidence is 'the same key with another payload: who sent it, and how often';

-- ---- Outbox -------------------------------------------------------------------------------------

create table ibid.aggregate (
	tenant text collate "C",
	type text collate "C",
	id text collate "C",
	version bigint not null,
	primary key (tenant, type, id)
) with (fillfactor = 80);
comment on table ibid.aggregate is
	'the head of each aggregate: this row makes versions unique and contiguous (I5)';

create table ibid.event_key (
	tenant text collate "C",
	key text collate "C",
	event_id uuid not null,
	primary key (tenant, key)
);
comment on table ibid.event_key is 'event keys that callers gave: unique per tenant';

-- id, aggregatetype, aggregateid, type and payload are named as Debezium's event router reads them.
create table ibid.event (
	id uuid,
	aggregatetype text not null,
	aggregateid text not null,
	type text not null,
	payload text not null,
	tenant text collate "C",
	version bigint not null,
	key text not null,
	command_id uuid not null,
	ordinal int not null,
	correlation_id text,
	causation_id text,
	topic text,
	partition_key text not null,
	headers text not null default '{}',
	created_at timestamptz not null,
	xid xid8 not null default pg_current_xact_id(), -- the relay's cursor is a snapshot
	primary key (tenant, id)
) partition by range (id);
create table ibid.event_default partition of ibid.event default;
comment on table ibid.event is 'the outbox: inserted, never edited (I3)';

-- ---- Audit --------------------------------------------------------------------------------------

create table ibid.audit (
	id uuid,
	tenant text collate "C",
	command_id uuid not null,
	operation text not null,
	contract_version int not null,
	fact text not null,
	outcome text not null,
	client text,
	actor text,
	resource_type text,
	resource_id text,
	correlation_id text,
	causation_id text,
	fingerprint bytea not null,
	at timestamptz not null,
	primary key (tenant, id)
) partition by range (id);
create table ibid.audit_default partition of ibid.audit default;
comment on table ibid.audit is 'business evidence, one entry per accepted intent: never edited (I3)';

create function ibid.refuse_edit() returns trigger language plpgsql as $$
begin
	raise exception 'rows of %.% are never edited or deleted', tg_table_schema, tg_table_name
		using errcode = 'IB007';
end $$;
comment on function ibid.refuse_edit() is
	'keeps even the owner from editing evidence by accident; retention drops partitions (I3)';

create trigger event_is_never_edited before update or delete on ibid.event
	for each row execute function ibid.refuse_edit();
create trigger audit_is_never_edited before update or delete on ibid.audit
	for each row execute function ibid.refuse_edit();
-- Unlike those for rows, triggers for statements are not inherited: each partition needs its own.
create trigger event_is_never_emptied before truncate on ibid.event
	for each statement execute function ibid.refuse_edit();
create trigger event_is_never_emptied before truncate on ibid.event_default
	for each statement execute function ibid.refuse_edit();
create trigger audit_is_never_emptied before truncate on ibid.audit
	for each statement execute function ibid.refuse_edit();
create trigger audit_is_never_emptied before truncate on ibid.audit_default
	for each statement execute function ibid.refuse_edit();

-- ---- Functions ----------------------------------------------------------------------------------

create function ibid.demand(ok boolean, state text, sentence text) returns void
language plpgsql as $$
begin
	if ok is not true then
		raise exception using errcode = state, message = sentence;
	end if;
end $$;
comment on function ibid.demand(boolean, text, text) is
	'fails the transaction unless ok: lets a pipeline stop before its COMMIT';

create function ibid.lock_key(tenant text, operation text, scope text, key text) returns bigint
language sql immutable as $$
	select ('x' || encode(substring(sha256(
		convert_to($1, 'UTF8') || '\x00'::bytea || convert_to($2, 'UTF8') || '\x00'::bytea
		|| convert_to($3, 'UTF8') || '\x00'::bytea || convert_to($4, 'UTF8')) from 1 for 8), 'hex'))
		::bit(64)::bigint
$$;
comment on function ibid.lock_key(text, text, text, text) is
	'the advisory lock that a running command holds; the same in libibid';

create function ibid.reject(code text, status int, message text) returns void
language plpgsql as $$
begin
	if code is null or code !~ '^[A-Z0-9_]+$' or status is null or status not between 400 and 499 then
		raise exception 'reject needs a code of A-Z, 0-9 and _, and a status from 400 to 499'
			using errcode = 'IB003';
	end if;
	raise exception using errcode = 'IB001', message = coalesce(message, code),
		detail = json_build_object('code', code, 'status', status, 'text', message)::text;
end $$;
comment on function ibid.reject(text, int, text) is
	'rejects the command for good: its business change is rolled back, the rejection is its outcome';

-- The n-th event of a command has the command's id with n in its last two bytes: stable over retries, in
-- the order of commands, and found by the primary key.
create function ibid.append_event(of_tenant text, of_command uuid, ordinal int, aggregate_type text,
	aggregate_id text, event_type text, body text, wanted bigint, given_key text, correlation text,
	causation text, at timestamptz)
returns uuid language plpgsql as $$
declare
	new_id uuid := overlay(of_command::text placing lpad(to_hex(ordinal), 4, '0') from 33);
	moved bigint;
begin
	-- The head goes from v - 1 to v; an aggregate that nobody has seen is at 0.
	if wanted is null or wanted = 1 then
		insert into ibid.aggregate as head (tenant, type, id, version)
		values (of_tenant, aggregate_type, aggregate_id, 1)
		on conflict (tenant, type, id) do update set version = head.version + 1
			where wanted is null
		returning head.version into moved;
	else
		update ibid.aggregate as head set version = wanted
		where head.tenant = of_tenant and head.type = aggregate_type and head.id = aggregate_id
			and head.version = wanted - 1
		returning head.version into moved;
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
		payload, version, key, correlation_id, causation_id, partition_key, created_at)
	values (of_tenant, new_id, of_command, ordinal, aggregate_type, aggregate_id, event_type, body,
		moved, coalesce(given_key, of_command || ':' || ordinal), correlation, causation, aggregate_id, at);
	return new_id;
end $$;
comment on function ibid.append_event(text, uuid, int, text, text, text, text, bigint, text, text, text,
	timestamptz) is 'appends one event to the outbox and moves its aggregate''s head';

-- What it needs to know of the running command are settings of the transaction, made by claim. In
-- plpgsql, like all that handlers call: a SQL function that is not inlined is planned at every call.
create function ibid.emit_json(aggregate_type text, aggregate_id text, type text, payload text,
	version bigint, key text)
returns uuid language plpgsql as $$
declare
	ordinal text := current_setting('ibid.ordinal', true)::int + 1;
begin
	if ordinal is null or type is null or payload is null or ordinal::int > 65535
		or type <> all (string_to_array(current_setting('ibid.emits'), ','))
		or (octet_length(aggregate_type) between 1 and 255) is not true
		or (octet_length(aggregate_id) between 1 and 255) is not true
		or octet_length(key) not between 1 and 255 or version < 0
		or octet_length(payload) > 1048576 then
		raise exception 'emit: %', case
			when ordinal is null then 'no command is running in this transaction'
			when payload is null then 'the payload is missing'
			when ordinal::int > 65535 then 'more than 65535 events in one command'
			when octet_length(payload) > 1048576 then 'the payload is longer than 1 MiB'
			when (octet_length(aggregate_type) between 1 and 255
				and octet_length(aggregate_id) between 1 and 255) is not true
				then 'aggregate type and id are texts of 1 to 255 bytes'
			when octet_length(key) not between 1 and 255 then 'the key is a text of 1 to 255 bytes, or null'
			when version < 0 then 'the version is a positive integer, or 0 or null for the next'
			else format('%s is not declared under the contract''s emits', type) end
			using errcode = 'IB003';
	end if;
	ordinal := set_config('ibid.ordinal', ordinal, true); -- an assignment, because PERFORM is a query
	return ibid.append_event(current_setting('ibid.tenant'), current_setting('ibid.command_id')::uuid,
		ordinal::int, aggregate_type, aggregate_id, type, payload, nullif(version, 0), key,
		nullif(current_setting('ibid.correlation_id'), ''),
		nullif(current_setting('ibid.causation_id'), ''), current_setting('ibid.now')::timestamptz);
end $$;
comment on function ibid.emit_json(text, text, text, text, bigint, text) is
	'emit, with a payload that is known to be JSON';

create function ibid.emit(aggregate_type text, aggregate_id text, type text, payload text,
	version bigint default null, key text default null)
returns uuid language plpgsql as $$
begin -- the cast refuses what is not JSON
	return ibid.emit_json(aggregate_type, aggregate_id, type, payload::json::text, version, key);
end $$;
comment on function ibid.emit(text, text, text, text, bigint, text) is
	'appends an event for the running command; version: of the aggregate after it, 0 or null for the next';

create function ibid.emit(aggregate_type text, aggregate_id text, type text, payload jsonb,
	version bigint default null, key text default null)
returns uuid language plpgsql as $$
begin
	return ibid.emit_json(aggregate_type, aggregate_id, type, payload::text, version, key);
end $$;
comment on function ibid.emit(text, text, text, jsonb, bigint, text) is 'emit, with a jsonb payload';

create function ibid.emit(aggregate_type text, aggregate_id text, type text, payload json,
	version bigint default null, key text default null)
returns uuid language plpgsql as $$
begin
	return ibid.emit_json(aggregate_type, aggregate_id, type, payload::text, version, key);
end $$;
comment on function ibid.emit(text, text, text, json, bigint, text) is 'emit, with a json payload';

-- ---- Privileges ---------------------------------------------------------------------------------

revoke all on schema ibid from public;
revoke all on all tables in schema ibid from public;
revoke all on all functions in schema ibid from public;

-- Roles belong to the cluster: another database may have made them, or be making them now, and who
-- migrates may lack the right to. Each is its own block, so that one failure does not undo another.
do $$ begin
	if to_regrole('ibid_app') is null then
		create role ibid_app nologin;
	end if;
exception
	when duplicate_object or unique_violation then null;
	when insufficient_privilege then raise notice 'no right to create role ibid_app: skipped';
end $$;
do $$ begin
	if to_regrole('ibid_operator') is null then
		create role ibid_operator nologin;
	end if;
exception
	when duplicate_object or unique_violation then null;
	when insufficient_privilege then raise notice 'no right to create role ibid_operator: skipped';
end $$;
do $$ begin
	if to_regrole('ibid_migrator') is null then
		create role ibid_migrator nologin;
	end if;
exception
	when duplicate_object or unique_violation then null;
	when insufficient_privilege then raise notice 'no right to create role ibid_migrator: skipped';
end $$;

do $$ begin
	if to_regrole('ibid_app') is not null then
		grant usage on schema ibid to ibid_app;
		grant select on all tables in schema ibid to ibid_app;
		grant insert on ibid.command, ibid.answer, ibid.event, ibid.audit, ibid.aggregate,
			ibid.event_key, ibid.evidence, ibid.contract to ibid_app;
		grant update (state, scheme, contract_version, fingerprint, linked, status, resource_type,
			resource_id, reason, text, audit_id, attempts, client, actor, created_at, finished_at, expires_at)
			on ibid.command to ibid_app; -- never its identity or its id
		grant update (version) on ibid.aggregate to ibid_app;
		grant update (last_at, count) on ibid.evidence to ibid_app;
		grant execute on all functions in schema ibid to ibid_app;
	end if;
	if to_regrole('ibid_operator') is not null then
		grant usage on schema ibid to ibid_operator;
		grant select on all tables in schema ibid to ibid_operator;
	end if;
	if to_regrole('ibid_migrator') is not null then
		grant usage, create on schema ibid to ibid_migrator;
		grant select, insert on all tables in schema ibid to ibid_migrator;
		grant execute on all functions in schema ibid to ibid_migrator;
	end if;
end $$;
