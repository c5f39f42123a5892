-- 002_sql_api: commands in a transaction that the caller owns, from any language.
--
-- command_begin inserts the row, IN_PROGRESS, in the caller's transaction; complete, reject or fail finish
-- it there. A row in open_command stands for "begun and not finished": a deferred trigger refuses a commit
-- while there is one, so no row of it is ever committed: a visible row was inserted by this very
-- transaction.
--
-- The functions run with the rights of their owner, and the tenants that a caller may name come from its
-- database role: session_user, which no setting and no SET ROLE changes. What they keep in settings (ibid.begun,
-- ibid.open) is only a hint, looked up in open_command before it is believed.
--
-- Functions that callers may execute set rights and search_path. The functions that these call inherit both: setting
-- them again would cost 3 us a call, and make nothing safer.
--
-- More error states:
--   IB010 bad input, as the message says
--   IB011 begun and not finished, not begun here, or rejected or failed before its work was rolled back
--   IB012 the payload must be encrypted

-- ---- Who may use which tenant -------------------------------------------------------------------

create table ibid.tenant_role (
	role text collate "C",
	tenant text collate "C",
	at timestamptz not null default clock_timestamp(),
	primary key (role, tenant)
);
comment on table ibid.tenant_role is
	'the tenants of each database role; members of the role have them too';

create function ibid_internal.is_service() returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
	if pg_has_role(session_user, to_regrole('ibid_service'), 'member') then
		return true;
	end if;
	return pg_has_role(session_user, (select nspowner from pg_namespace where nspname = 'ibid'), 'member');
end $$;
comment on function ibid_internal.is_service() is 'may the caller''s role act for every tenant, as libibid does?';

create function ibid.tenants() returns setof text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
	return query select t.tenant from ibid.tenant_role as t join pg_roles as r on r.rolname = t.role
		where pg_has_role(session_user, r.oid, 'member');
end $$;
comment on function ibid.tenants() is 'the tenants that the caller''s role was given';

-- The look-up that is enough for most callers comes first; memberships are checked only for the tenant's roles.
create function ibid_internal.demand_tenant(wanted text) returns void
language plpgsql stable as $$
declare
	has boolean;
begin
	select true into has from ibid.tenant_role as t where t.role = session_user and t.tenant = wanted;
	if has or (wanted is not null and ibid_internal.is_service()) then
		return;
	end if;
	select true into has from ibid.tenant_role as t join pg_roles as r on r.rolname = t.role
	where t.tenant = wanted and pg_has_role(session_user, r.oid, 'member') limit 1;
	if has is not true then
		raise exception 'role % has no tenant %', session_user, coalesce(quote_literal(wanted), 'null')
			using errcode = 'insufficient_privilege',
			hint = 'an administrator gives it with ibid.grant_tenant(role, tenant)';
	end if;
end $$;
comment on function ibid_internal.demand_tenant(text) is 'fails unless the caller''s role may use the tenant';

create function ibid.grant_tenant(role text, tenant text) returns void
language plpgsql as $$
#variable_conflict use_column
begin
	if to_regrole(quote_ident(grant_tenant.role)) is null then
		raise exception 'there is no role %', grant_tenant.role using errcode = 'undefined_object';
	end if;
	insert into ibid.tenant_role (role, tenant) values (grant_tenant.role, grant_tenant.tenant)
	on conflict do nothing;
end $$;
comment on function ibid.grant_tenant(text, text) is 'lets a database role, and its members, use a tenant';

create function ibid.revoke_tenant(role text, tenant text) returns void
language plpgsql as $$
#variable_conflict use_column
begin
	delete from ibid.tenant_role as t where t.role = revoke_tenant.role and t.tenant = revoke_tenant.tenant;
end $$;
comment on function ibid.revoke_tenant(text, text) is 'takes a tenant from a database role';

-- ---- Open commands ------------------------------------------------------------------------------

-- Not logged: no row of it outlives its transaction.
create unlogged table ibid.open_command (
	xid xid8,
	command_id uuid,
	tenant text collate "C" not null,
	operation text collate "C" not null,
	scope text collate "C" not null,
	key text collate "C" not null,
	contract_version int not null,
	correlation_id text,
	causation_id text,
	trace text, -- as ibid_internal.check_trace makes it; null: none
	fact text, -- what the contract says, for the functions that follow begin
	keep text,
	emits jsonb,
	ordinal int not null default 0,
	written oid[], -- tables that the transaction had written to before; null: what it writes is not watched
	primary key (xid, command_id)
) with (fillfactor = 50);
comment on table ibid.open_command is
	'begun and not finished: seen by its own transaction only, for a commit with one is refused';

create function ibid_internal.refuse_unfinished() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if exists (select from ibid.open_command as o where o.xid = new.xid and o.command_id = new.command_id) then
		raise exception 'command % was begun and not finished', new.command_id using errcode = 'IB011',
			hint = 'call ibid.command_complete, command_reject or command_fail before the commit';
	end if;
	return null;
end $$;
comment on function ibid_internal.refuse_unfinished() is 'refuses a commit while a command is unfinished';
create constraint trigger command_is_finished after insert on ibid.open_command
	deferrable initially deferred for each row execute function ibid_internal.refuse_unfinished();

-- In SQL, so that the planner puts it into the expressions that call it.
create function ibid_internal.count_open(more int) returns text language sql as $$
	select set_config('ibid.open', greatest(coalesce(nullif(current_setting('ibid.open', true), ''), '0')::int + more,
		0)::text, true)
$$;
comment on function ibid_internal.count_open(int) is 'notes how many commands are open, for emit';

create function ibid_internal.take_open(wanted uuid) returns ibid.open_command
language plpgsql as $$
declare
	taken ibid.open_command;
	left_open text;
begin
	delete from ibid.open_command as o
	where o.xid = pg_current_xact_id() and o.command_id = wanted
	returning o.* into taken;
	if not found then
		raise exception 'command % is not open in this transaction', coalesce(wanted::text, 'null')
			using errcode = 'IB011',
			hint = 'begin it with ibid.command_begin, in the transaction that finishes it, and finish it once';
	end if;
	left_open := ibid_internal.count_open(-1);
	return taken;
end $$;
comment on function ibid_internal.take_open(uuid) is 'a command begun in this transaction, which is open no longer';

-- ---- What the caller wrote ----------------------------------------------------------------------

-- A statement that writes to a table locks it until the transaction ends, or until a rollback to a savepoint before the
-- statement. (The server's row counters are no use: they include rolled-back changes and those of earlier
-- transactions.)
create function ibid_internal.tables_written() returns oid[]
language plpgsql as $$
begin
	return array(select l.relation from pg_locks as l
		where l.locktype = 'relation' and l.pid = pg_backend_pid()
			and l.database = (select d.oid from pg_database as d where d.datname = current_database())
			and l.mode in ('RowExclusiveLock', 'AccessExclusiveLock'));
end $$;
comment on function ibid_internal.tables_written() is
	'the tables that this transaction has written to, or changed, and has not rolled back';

-- A refused command must change nothing, so the caller's work must be rolled back before. Changes belong to the command
-- if no other command was open when it was begun, and none was begun later.
create function ibid_internal.demand_undone(open ibid.open_command) returns void
language plpgsql as $$
declare
	tables oid[];
	written text[];
begin
	if open.written is null or current_setting('ibid.begun', true) is distinct from open.command_id::text then
		return;
	end if;
	tables := ibid_internal.tables_written(); -- once
	written := array(select c.oid::regclass::text from pg_class as c
		where c.oid = any (tables) and c.oid <> all (open.written)
			and c.relkind in ('r', 'p', 'f') and c.relpersistence <> 't'
			and c.relnamespace <> all (array['pg_catalog', 'ibid']::regnamespace[])
		order by 1);
	if written <> '{}' then
		raise exception 'since command_begin the transaction has written to %: roll back to the savepoint set after '
			'command_begin, then reject or fail the command', array_to_string(written, ', ')
			using errcode = 'IB011',
			hint = 'set a savepoint between command_begin and the work: what is refused changes nothing';
	end if;
end $$;
comment on function ibid_internal.demand_undone(ibid.open_command) is
	'fails while a command''s transaction holds what the caller wrote since its begin';

-- ---- Names --------------------------------------------------------------------------------------
--
-- What SQL callers may give, within the bounds of libibid, so that what one accepts the other can be sent again.

create function ibid_internal.check_names(tenant text, client text, actor text, resource text, correlation_id text,
	causation_id text)
returns void language plpgsql immutable parallel safe as $$
declare
	what constant text[] := array['tenant', 'client', 'actor', 'resource', 'correlation id', 'causation id'];
	given text[];
	together text collate "C" := concat(tenant, client, actor, resource, correlation_id, causation_id);
	nothing text;
begin
	-- One look at all of them is enough where nothing is unusual.
	if tenant <> '' and octet_length(together) <= 128 and together !~ '[^!-~]' then
		return;
	end if;
	given := array[tenant, client, actor, resource, correlation_id, causation_id];
	for i in 1..6 loop
		continue when i > 1 and coalesce(given[i], '') = '';
		nothing := ibid_internal.check_given(what[i], given[i], 128);
	end loop;
end $$;
comment on function ibid_internal.check_names(text, text, text, text, text, text) is
	'refuses names that libibid refuses; all but the tenant may be left out';

create function ibid_internal.check_bytes(what text, given text, bytes_max int) returns void
language plpgsql immutable parallel safe as $$
begin
	if octet_length(given) > bytes_max then
		raise exception 'the % is longer than % bytes', what, bytes_max using errcode = 'IB010';
	end if;
end $$;
comment on function ibid_internal.check_bytes(text, text, int) is 'refuses a text that is longer than libibid takes';

-- ---- Begin --------------------------------------------------------------------------------------

-- Takes the identity for this transaction by the same advisory lock as libibid, so that a duplicate that runs at the same
-- time is answered without waiting. More than a thousand of these locks would fill the server's lock table: a bulk
-- transaction then relies on its rows alone, and such a duplicate waits for its commit.
create function ibid_internal.take_identity(tenant text, operation text, scope text, key text) returns boolean
language plpgsql as $$
declare
	locks int := coalesce(nullif(current_setting('ibid.locks', true), ''), '0')::int;
	noted text;
begin
	if locks >= 1000 then
		return true;
	end if;
	noted := set_config('ibid.locks', (locks + 1)::text, true);
	return pg_try_advisory_xact_lock(ibid.lock_key(tenant, operation, scope, key));
end $$;
comment on function ibid_internal.take_identity(text, text, text, text) is 'is no twin running this identity now?';

-- The decision table for a duplicate of an existing row, as in libibid.
create function ibid_internal.verdict(terms ibid.terms, state text, same boolean, expired boolean) returns text
language plpgsql immutable as $$
begin
	return case
		when expired and state in ('COMPLETED', 'REJECTED', 'FAILED') then
			case terms.after_expiry when 'run-again' then 'execute' else 'expired' end
		when state = 'UNKNOWN' then 'unknown'
		when state = 'REJECTED' and same then
			case terms.rejected when 'evaluate-again' then 'execute' else 'replay' end
		when state = 'REJECTED' then
			case terms.rejected_other_payload when 'evaluate' then 'execute'
				else 'conflict' end
		when not same then 'conflict'
		when state = 'COMPLETED' then 'replay'
		when state = 'FAILED' then 'execute'
		else 'in_progress' end;
end $$;
comment on function ibid_internal.verdict(ibid.terms, text, boolean, boolean) is 'what a duplicate of a command gets';

create function ibid.command_begin(tenant text, operation text, key text, payload text,
	client text default null, actor text default null, resource text default null,
	correlation_id text default null, causation_id text default null, contract_version int default null,
	traceparent text default null, tracestate text default null)
returns table (decision text, command_id uuid, status int, body text, outcome text, reason text,
	message text, resource_type text, resource_id text, first_at timestamptz, expires_at timestamptz,
	correctable boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
	terms ibid.terms;
	own_scope text;
	own_key text;
	print bytea; -- under the wanted version, for a new row
	kept_print bytea; -- under the version on the row that is there
	now timestamptz := clock_timestamp();
	seen ibid.command;
	unbound boolean; -- nothing is accepted under the key: another payload may take it (I2)
	gained boolean := false;
	contract json;
	wrong text;
	own_scheme int := 1; -- of the fingerprint; 0: the key stays unbound
	noted text;
	trace text;
	fresh boolean := pg_current_xact_id_if_assigned() is null; -- no row was written before
	place cid; -- among the statements of the transaction that write, though they hit no row
	written oid[];
begin
	correctable := false;
	perform ibid_internal.demand_tenant(command_begin.tenant);
	noted := ibid_internal.check_names(command_begin.tenant, command_begin.client, command_begin.actor,
		command_begin.resource, command_begin.correlation_id, command_begin.causation_id);
	if command_begin.traceparent is not null or command_begin.tracestate is not null then
		trace := ibid_internal.check_trace(command_begin.traceparent, command_begin.tracestate);
	end if;
	noted := ibid_internal.check_bytes('payload', command_begin.payload, 4 << 20);
	terms := ibid_internal.terms_of(command_begin.operation, command_begin.contract_version);
	if terms.staged is not null then
		raise exception 'operation % is staged: it is run by %', command_begin.operation,
			case ibid.contract_of(command_begin.operation, terms.version) ->> 'handler'
				when 'upstream' then '`ibid proxy`' else 'a program that calls ibid_stage' end
			using errcode = 'IB010';
	elsif coalesce(terms.payload, 'omit') <> 'omit' and ibid_internal.needs_key(
			ibid.contract_of(command_begin.operation, terms.version)) then
		raise exception 'the payload of operation % is encrypted, and the key is not in the database',
			command_begin.operation using errcode = 'IB012',
			hint = 'submit it through libibid or the ibid binary, which read the key file';
	end if;
	if terms.strategy in ('natural', 'set-once', 'version', 'commutative') then
		raise exception 'operation % has the strategy %: it is enforced around its handler, by ibid submit or '
			'a program that calls ibid_submit', command_begin.operation, terms.strategy
			using errcode = 'IB010';
	end if;
	own_scope := ibid_internal.scope_among(terms.command, terms.scope, command_begin.client, command_begin.actor,
		command_begin.resource);
	own_key := case when json_typeof(terms.key_from) = 'string' and ibid_internal.is_plain(command_begin.key, 255)
		then command_begin.key
		else ibid.key_of(ibid.contract_of(command_begin.operation, terms.version), command_begin.tenant,
			command_begin.key, command_begin.payload) end;
	print := sha256(convert_to(ibid_internal.print_text(terms.command, terms.version::text, terms.same_payload,
		command_begin.tenant, command_begin.client, command_begin.actor, command_begin.resource,
		command_begin.payload), 'UTF8'));

	-- Look; where that is for us to run, take the identity and look again, in a statement of its own: under READ
	-- COMMITTED it sees what the last holder committed. Who only looks holds nothing until its commit.
	loop
		select c.* into seen from ibid.command as c
		where c.tenant = command_begin.tenant and c.operation = command_begin.operation
			and c.scope = own_scope and c.key = own_key;
		decision := 'execute';
		unbound := true;
		if seen.id is not null then
			kept_print := print;
			if seen.contract_version <> terms.version then
				kept_print := ibid.fingerprint(
					ibid.contract_of(command_begin.operation, seen.contract_version), command_begin.tenant,
					command_begin.client, command_begin.actor, command_begin.resource, command_begin.payload);
			end if;
			unbound := seen.state = 'FAILED' and seen.scheme = 0;
			decision := ibid_internal.verdict(terms, seen.state, unbound or kept_print = seen.fingerprint,
				seen.expires_at <= now);
		end if;
		exit when gained or decision <> 'execute';
		gained := ibid_internal.take_identity(command_begin.tenant, command_begin.operation, own_scope, own_key);
		if not gained then
			decision := 'in_progress';
			exit;
		end if;
	end loop;

	if decision <> 'execute' then
		command_id := seen.id;
		first_at := seen.created_at;
		expires_at := seen.expires_at;
		status := case decision when 'replay' then seen.status when 'expired' then 410 when 'unknown' then 202
			else 409 end;
		if decision = 'replay' then
			outcome := case when seen.state = 'REJECTED' then 'rejected' when seen.linked then 'linked'
				else 'executed' end;
			body := ibid.kept_body(seen.tenant, seen.id, seen.attempts);
			reason := seen.reason;
			message := seen.text;
			resource_type := seen.resource_type;
			resource_id := seen.resource_id;
		elsif decision = 'conflict' then
			insert into ibid.evidence as e
				(tenant, command_id, fingerprint, client, actor, first_at, last_at, count)
			values (command_begin.tenant, seen.id, kept_print, coalesce(command_begin.client, ''),
				coalesce(command_begin.actor, ''), now, now, 1)
			on conflict (tenant, command_id, fingerprint, client, actor) do update
				set last_at = greatest(e.last_at, excluded.last_at), count = e.count + 1;
		end if;
		return next;
		return;
	end if;

	if not ibid_internal.fields_hold(terms.fields, terms.unknown_fields, command_begin.payload) then
		contract := ibid.contract_of(command_begin.operation, terms.version);
		wrong := ibid_internal.wrong_fields(contract, command_begin.payload);
		correctable := (unbound or seen.expires_at <= now) and contract #>> '{failures,validation}' = 'retry';
		own_scheme := case when correctable then 0 else 1 end;
	end if;
	if seen.id is null then
		command_id := ibid_internal.uuid_v7();
		insert into ibid.command (tenant, operation, scope, key, id, state, scheme, contract_version,
			fingerprint, linked, status, attempts, client, actor, created_at, expires_at)
		values (command_begin.tenant, command_begin.operation, own_scope, own_key, command_id,
			'IN_PROGRESS', own_scheme, terms.version, print, false, 0, 1, command_begin.client,
			command_begin.actor, now, now + terms.retain)
		on conflict on constraint command_pkey do nothing
		returning cmin into place;
	else
		-- A command that ran its time out and runs again is another one; a second try is the same.
		command_id := case when seen.expires_at <= now then ibid_internal.uuid_v7() else seen.id end;
		update ibid.command as c set id = command_begin.command_id, state = 'IN_PROGRESS',
			scheme = own_scheme, contract_version = terms.version, fingerprint = print, linked = false,
			status = 0, resource_type = null, resource_id = null, reason = null, text = null,
			audit_id = null, client = command_begin.client, actor = command_begin.actor, finished_at = null,
			attempts = case when seen.expires_at <= now then 1 else seen.attempts + 1 end,
			created_at = case when seen.expires_at <= now then now else c.created_at end,
			expires_at = now + terms.retain, correlation_id = null, causation_id = null, traceparent = null,
			tracestate = null
		where c.tenant = command_begin.tenant and c.operation = command_begin.operation
			and c.scope = own_scope and c.key = own_key
			and c.state = seen.state and c.attempts = seen.attempts and c.id = seen.id
		returning c.cmin into place;
	end if;
	if not found then -- a bulk transaction without the lock had it, and has committed by now
		raise exception 'the key was used at the same time' using errcode = 'serialization_failure',
			hint = 'retry the transaction';
	end if;
	if command_id <> seen.id then
		perform ibid_internal.forget_answers(command_begin.tenant, seen.id);
	elsif unbound and seen.fingerprint <> print then -- the refused payload stays as evidence (I2)
		insert into ibid.evidence as e (tenant, command_id, fingerprint, client, actor, first_at, last_at, count)
		values (command_begin.tenant, seen.id, seen.fingerprint, coalesce(seen.client, ''),
			coalesce(seen.actor, ''), seen.finished_at, seen.finished_at, 1)
		on conflict (tenant, command_id, fingerprint, client, actor) do update
			set last_at = greatest(e.last_at, excluded.last_at), count = e.count + 1;
	end if;
	if terms.payload is not null or seen.contract_version <> terms.version then
		perform ibid_internal.keep_payload(command_begin.tenant, command_id,
			ibid.contract_of(command_begin.operation, terms.version), command_begin.payload,
			seen.id is not null);
	end if;

	if fresh and place = '0' then
		written := '{}';
	elsif not fresh and ibid_internal.count_open(0) = '0' and current_setting('ibid.locks', true)::int <= 10 then
		written := ibid_internal.tables_written(); -- 30 us: not for each command of many
	end if;
	insert into ibid.open_command (xid, command_id, tenant, operation, scope, key, contract_version,
		correlation_id, causation_id, trace, fact, keep, emits, written)
	values (pg_current_xact_id(), command_begin.command_id, command_begin.tenant, command_begin.operation,
		own_scope, own_key, terms.version, command_begin.correlation_id, command_begin.causation_id,
		trace, terms.fact, terms.keep, terms.emits, written);
	noted := set_config('ibid.begun', command_id::text, true);
	noted := ibid_internal.count_open(1);
	if wrong is not null then
		decision := 'rejected';
		status := 422;
		outcome := 'rejected';
		reason := 'INVALID_PAYLOAD';
		message := wrong;
		perform ibid_internal.refuse_command(command_id, 'validation', 422, 'INVALID_PAYLOAD', wrong);
	end if;
	return next;
end $$;
comment on function ibid.command_begin(text, text, text, text, text, text, text, text, text, int, text, text) is
	'begins a command in the caller''s transaction. decision: execute (do the work, then finish it), or '
	'replay, rejected, conflict, in_progress, unknown, expired (answer so, and do nothing). correctable: rejected, and '
	'the corrected payload may take the key';

-- ---- Finish -------------------------------------------------------------------------------------

create function ibid.command_complete(command_id uuid, status int default 200, body text default null,
	resource_type text default null, resource_id text default null, linked boolean default false)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
	open ibid.open_command := ibid_internal.take_open(command_complete.command_id);
	now timestamptz := clock_timestamp();
	done record;
	noted text;
begin
	noted := ibid_internal.check_bytes('resource''s type', command_complete.resource_type, 128);
	noted := ibid_internal.check_bytes('resource''s id', command_complete.resource_id, 255);
	noted := ibid_internal.check_bytes('body', command_complete.body, 4 << 20);
	if (command_complete.status between 200 and 399) is not true then
		raise exception 'status % is no success: 200 to 399', coalesce(command_complete.status::text, 'null')
			using errcode = 'IB010', hint = 'reject with ibid.command_reject, fail with ibid.command_fail';
	end if;
	-- Not by command_lease, which seems to be empty and, beside a transaction that stays open, is full of what has
	-- ended: hence the other collation.
	update ibid.command as c set state = 'COMPLETED', audit_id = c.id, finished_at = now,
		linked = coalesce(command_complete.linked, false),
		status = case when open.keep = 'none' then 0 else command_complete.status end,
		resource_type = case when open.keep in ('full', 'reference') then command_complete.resource_type end,
		resource_id = case when open.keep in ('full', 'reference') then command_complete.resource_id end
	where c.tenant = open.tenant and c.operation = open.operation and c.scope = open.scope
		and c.key = open.key and c.id = open.command_id and c.state collate "POSIX" = 'IN_PROGRESS'
	returning c.attempts, c.client, c.actor, c.fingerprint into strict done;
	if command_complete.body is not null and open.keep = 'full' then
		noted := ibid.canonical(command_complete.body); -- refuses what is not JSON; kept are the caller's own bytes
		insert into ibid.answer (tenant, command_id, attempts, body)
		values (open.tenant, open.command_id, done.attempts, command_complete.body);
	end if;
	insert into ibid.audit (tenant, id, command_id, operation, contract_version, fact, outcome, client,
		actor, resource_type, resource_id, correlation_id, causation_id, traceparent, tracestate,
		fingerprint, at)
	values (open.tenant, open.command_id, open.command_id, open.operation, open.contract_version, open.fact,
		case when command_complete.linked then 'linked' else 'executed' end, done.client, done.actor,
		command_complete.resource_type, command_complete.resource_id, open.correlation_id,
		open.causation_id, ibid_internal.traceparent_in(open.trace), ibid_internal.tracestate_in(open.trace), done.fingerprint,
		now);
end $$;
comment on function ibid.command_complete(uuid, int, text, text, text, boolean) is
	'finishes a command that this transaction began: it and the caller''s changes commit together. linked: the '
	'business fact was there before, and body and resource are those of the existing document';

create function ibid_internal.refuse_command(of_command uuid, class text, with_status int, code text, sentence text)
returns void language plpgsql as $$
declare
	open ibid.open_command := ibid_internal.take_open(of_command);
	contract json := ibid.contract_of(open.operation, open.contract_version);
begin
	if class <> 'validation' then
		perform ibid_internal.demand_undone(open);
	end if;
	if open.ordinal > 0 then
		raise exception 'command % has emitted events: what is refused changes nothing', of_command
			using errcode = 'IB011',
			hint = 'set a savepoint before the work and roll back to it, then reject or fail the command';
	end if;
	update ibid.command as c set finished_at = clock_timestamp(),
		state = case contract #>> array['failures', class] when 'final' then 'REJECTED' else 'FAILED' end,
		status = with_status, reason = code, text = sentence, correlation_id = open.correlation_id,
		causation_id = open.causation_id, traceparent = ibid_internal.traceparent_in(open.trace),
		tracestate = ibid_internal.tracestate_in(open.trace)
	where c.tenant = open.tenant and c.operation = open.operation and c.scope = open.scope
		and c.key = open.key and c.id = open.command_id and c.state collate "POSIX" = 'IN_PROGRESS';
end $$;
comment on function ibid_internal.refuse_command(uuid, text, int, text, text) is
	'finishes a command without success: for good, or until it is tried again, as the contract says of the class';

create function ibid.command_reject(command_id uuid, code text, status int default 422,
	message text default null)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if (command_reject.code ~ '^[A-Z0-9_]{1,64}$') is not true
		or (command_reject.status between 400 and 499) is not true then
		raise exception 'reject needs a code of up to 64 A-Z, 0-9 and _, and a status from 400 to 499'
			using errcode = 'IB010';
	end if;
	perform ibid_internal.check_bytes('message', command_reject.message, 2000);
	perform ibid_internal.refuse_command(command_reject.command_id, 'business', command_reject.status,
		command_reject.code, command_reject.message);
end $$;
comment on function ibid.command_reject(uuid, text, int, text) is
	'rejects a command that this transaction began. Roll back to a savepoint first where work was done';

create function ibid.command_fail(command_id uuid, message text default null)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	perform ibid_internal.check_bytes('message', command_fail.message, 2000);
	perform ibid_internal.refuse_command(command_fail.command_id, 'server', 500, 'HANDLER_FAILED',
		command_fail.message);
end $$;
comment on function ibid.command_fail(uuid, text) is
	'fails a command that this transaction began: the same key may try again, where the contract says so';

-- ---- Emit ---------------------------------------------------------------------------------------

create function ibid_internal.emit_for_caller(aggregate_type text, aggregate_id text, event_type text, body text,
	version bigint, given_key text, of_command uuid)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	open ibid.open_command;
	place record;
begin
	-- In a group that tells its events it is nobody's turn. WHEN OTHERS does not catch this one: an emit that a
	-- function or trigger swallows would be lost, where it is written when the command runs alone.
	if of_command is null and current_setting('ibid.command_id', true) = 'group' then
		raise exception 'emit: no command has its turn' using errcode = 'assert_failure';
	end if;
	if of_command is null and coalesce(nullif(current_setting('ibid.open', true), ''), '0')::int > 1 then
		raise exception 'emit: more than one command is open; say which with command_id'
			using errcode = 'IB003';
	end if;
	update ibid.open_command as o set ordinal = o.ordinal + 1
	where o.xid = pg_current_xact_id()
		and o.command_id = coalesce(of_command, nullif(current_setting('ibid.begun', true), '')::uuid)
	returning o.* into open;
	if not found then
		raise exception 'emit: no command is open in this transaction' using errcode = 'IB003';
	end if;
	if not ibid_internal.is_event(open.ordinal, open.emits ? event_type, aggregate_type, aggregate_id, body, version,
			given_key) then
		perform ibid_internal.refuse_event(open.ordinal, aggregate_type, aggregate_id, event_type, body, version, given_key);
	end if;
	-- by the newest contract that is kept
	place := ibid_internal.place_event(null, open.tenant, aggregate_type, aggregate_id, event_type, body);
	return ibid.append_event(open.tenant, open.command_id, open.ordinal, aggregate_type, aggregate_id,
		event_type, body, nullif(version, 0), given_key, open.correlation_id, open.causation_id,
		clock_timestamp(), ibid_internal.traceparent_in(open.trace), ibid_internal.tracestate_in(open.trace), place.topic,
		place.partition_key, place.headers);
end $$;
comment on function ibid_internal.emit_for_caller(text, text, text, text, bigint, text, uuid) is
	'emit, for a command that the caller began in its own transaction';
