-- 002_command: commands that are claimed in one transaction and finished in another, and commands that share a
-- transaction.
--
-- More error states that ibid's functions raise:
--   IB009 the identity is in use

alter table ibid.command
	add column lease_token bigint, -- of the worker that may finish it; kept when it has
	add column lease_until timestamptz, -- null: no end, which is locked and not free
	-- Of a command IN_PROGRESS, so that recovery goes on with them, and of an outcome that is no success. A command
	-- that is COMPLETED has them in its audit entry, and nulls here.
	add column correlation_id text,
	add column causation_id text,
	add column traceparent text,
	add column tracestate text;
-- Few rows: only commands without an outcome. Not by tenant, because recovery reads all of them. Unknown commands have
-- no lease and are sorted last. They share this index, so that they can be counted without reading the table, and a new
-- command does not have to update another index.
create index command_lease on ibid.command (lease_until) where state in ('IN_PROGRESS', 'UNKNOWN');

-- The server reads the stored text of a CHECK anew for every INSERT: the two were 20 of the 280 us that a
-- command costs it. Only ibid's own statements and functions write here.
alter table ibid.command drop constraint command_state_check;
alter table ibid.command drop constraint command_audit_check;

-- The same lock_key, in plpgsql: a SQL function that is not inlined is planned at every call, which cost more
-- than anything else here.
create or replace function ibid.lock_key(tenant text, operation text, scope text, key text) returns bigint
language plpgsql immutable as $$
begin
	return ('x' || encode(substring(sha256(
		convert_to($1, 'UTF8') || E'\\x00'::bytea || convert_to($2, 'UTF8') || E'\\x00'::bytea
		|| convert_to($3, 'UTF8') || E'\\x00'::bytea || convert_to($4, 'UTF8')) from 1 for 8), 'hex'))
		::bit(64)::bigint;
end $$;

-- ---- Sharing a transaction -----------------------------------------------------------------------

-- A constraint that can't be deferred again by its name stays immediate for the next commands of the batch: a command
-- that needs it deferred fails, and runs alone.

create function ibid_internal.group_settle() returns void language plpgsql as $$
declare
	put_off text;
begin
	set constraints all immediate;
	select string_agg(distinct format('%I.%I', space.nspname, it.conname), ', ') into put_off
	from pg_constraint as it join pg_namespace as space on space.oid = it.connamespace
	where it.condeferred and has_schema_privilege(space.oid, 'usage') and not pg_is_other_temp_schema(space.oid)
		and not exists (select from pg_constraint as twin where twin.connamespace = it.connamespace
			and twin.conname = it.conname and not twin.condeferrable);
	if put_off is not null then
		execute 'set constraints ' || put_off || ' deferred';
	end if;
end $$;
comment on function ibid_internal.group_settle() is
	'checks what was deferred so far in this transaction; what comes next is deferred as declared';
