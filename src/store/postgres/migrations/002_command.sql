-- 002_command: commands that are claimed in one transaction and finished in another; a command in one round trip; and
-- commands that share a transaction.
--
-- More error states that ibid's functions raise:
--   IB008 the identity has a row    IB009 the identity is in use

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

-- ---- In one round trip ---------------------------------------------------------------------------

create function ibid_internal.express_claim(lock bigint, new_id text, of_tenant text, of_operation text,
	of_scope text, of_key text, correlation text, causation text, emits text, now text, busy text,
	trace text)
returns void language plpgsql as $$
declare
	gained boolean := pg_try_advisory_xact_lock(lock);
	seen ibid.command;
	done text; -- assignments, because PERFORM is a query
begin
	if current_setting('transaction_isolation') <> 'read committed' then
		raise exception 'ibid: not read committed' using errcode = 'IB008'; -- the long way sees to it
	end if;
	select * into seen from ibid.command as c
	where c.tenant = of_tenant and c.operation = of_operation and c.scope = of_scope and c.key = of_key;
	if found then
		raise notice using errcode = 'IB008', message = json_build_object('id', seen.id, 'state', seen.state, 'scheme', seen.scheme,
			'contract_version', seen.contract_version, 'fingerprint', encode(seen.fingerprint, 'hex'),
			'linked', seen.linked, 'status', seen.status, 'resource_type', seen.resource_type,
			'resource_id', seen.resource_id, 'reason', seen.reason, 'text', seen.text,
			'audit_id', seen.audit_id, 'attempts', seen.attempts, 'client', seen.client,
			'actor', seen.actor, 'created_us', (extract(epoch from seen.created_at) * 1000000)::bigint,
			'finished_us', (extract(epoch from seen.finished_at) * 1000000)::bigint,
			'expires_us', (extract(epoch from seen.expires_at) * 1000000)::bigint,
			'body', ibid.kept_body(seen.tenant, seen.id, seen.attempts));
		raise exception 'ibid: the key was used before' using errcode = 'IB008';
	elsif not gained then
		raise exception 'ibid: the key is in use' using errcode = 'IB009';
	end if;
	done := set_config('ibid.command_id', new_id, true);
	done := set_config('ibid.tenant', of_tenant, true);
	done := set_config('ibid.correlation_id', correlation, true);
	done := set_config('ibid.causation_id', causation, true);
	done := set_config('ibid.emits', emits, true);
	done := set_config('ibid.now', now, true);
	done := set_config('ibid.ordinal', '0', true);
	done := set_config('lock_timeout', busy, true);
	if trace <> '' then
		done := set_config('ibid.trace', trace, true);
	end if;
	if current_setting('synchronous_commit') = 'off' then
		done := set_config('synchronous_commit', 'on', true); -- I10, whatever the default
	end if;
end $$;
comment on function ibid_internal.express_claim(bigint, text, text, text, text, text, text, text, text, text, text, text) is
	'takes an identity without waiting and tells emit what runs, or fails; a notice is the row that has it';

create function ibid_internal.express_finish(of_tenant text, of_operation text, of_scope text, of_key text,
	new_id uuid, scheme int, contract_version int, fingerprint bytea, client text, actor text,
	at timestamptz, expires timestamptz, keep_status boolean, keep_resource boolean, fact text,
	correlation text, causation text, trace text, status bigint, resource_type text, resource_id text)
returns void language plpgsql as $$
begin
	if (status between 200 and 399) is not true then
		raise exception 'the script did not answer with a success' using errcode = 'IB003';
	end if;
	insert into ibid.command (tenant, operation, scope, key, id, state, scheme, contract_version,
		fingerprint, linked, status, resource_type, resource_id, audit_id, attempts, client, actor,
		created_at, finished_at, expires_at)
	values (of_tenant, of_operation, of_scope, of_key, new_id, 'COMPLETED', scheme, contract_version,
		fingerprint, false, case when keep_status then status else 0 end,
		case when keep_resource then resource_type end, case when keep_resource then resource_id end,
		new_id, 1, client, actor, at, at, expires);
	insert into ibid.audit (tenant, id, command_id, operation, contract_version, fact, outcome, client,
		actor, resource_type, resource_id, correlation_id, causation_id, traceparent, tracestate,
		fingerprint, at)
	values (of_tenant, new_id, new_id, of_operation, contract_version, fact, 'executed', client, actor,
		resource_type, resource_id, correlation, causation, ibid_internal.traceparent_in(trace),
		ibid_internal.tracestate_in(trace), fingerprint, at);
end $$;
comment on function ibid_internal.express_finish(text, text, text, text, uuid, int, int, bytea, text, text,
	timestamptz, timestamptz, boolean, boolean, text, text, text, text, bigint, text, text) is
	'writes the row and the audit entry of a command whose script has answered';

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
