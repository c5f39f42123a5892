-- 002_privileges: who may use what. It runs after the other files of schema 2.
--
--   ibid_app       SQL callers: the functions of the API, and reading rows of their own tenants
--   ibid_service   libibid and the ibid binary: every tenant
--   ibid_operator  people: reading every tenant
--   ibid_eraser    people who answer requests to be forgotten: reading every tenant, and erasing
--   ibid_migrator  set-up, contracts, tenants of roles
--
-- Rows are guarded by policies on the tenant, except from the owner of the tables. Partitions are read through
-- their root only: a policy of the root does not hold for a partition named directly.

-- In schema 1 libibid ran as ibid_app: when such a store is migrated, the members of ibid_app become members of
-- ibid_service. This happens only once in a cluster, when ibid_service is made: members that ibid_app gets later, for any
-- database, are SQL callers, and must not get every tenant.
do $$ declare
	member text;
begin
	if to_regrole('ibid_service') is null then
		create role ibid_service nologin;
		if exists (select from ibid.schema_version as v where v.version = 1 and v.at < now()) then
			for member in select m.rolname from pg_auth_members as a join pg_roles as m on m.oid = a.member
				where a.roleid = to_regrole('ibid_app') loop
				execute format('grant ibid_service to %I', member);
			end loop;
		end if;
	end if;
exception
	when duplicate_object or unique_violation then null;
	when insufficient_privilege then
		raise notice 'no right to create role ibid_service: create it, and grant it to the roles that libibid connects as';
end $$;

do $$ begin
	if to_regrole('ibid_eraser') is null then
		create role ibid_eraser nologin;
	end if;
exception
	when duplicate_object or unique_violation then null;
	when insufficient_privilege then raise notice 'no right to create role ibid_eraser: skipped';
end $$;

revoke all on all tables in schema ibid from public;
revoke all on all functions in schema ibid, ibid_internal from public;

-- Callers may use these pure functions without a right to the functions that they call.
alter function ibid.canonical(text) security definer;
alter function ibid.fingerprint(json, text, text, text, text, text) security definer
	set search_path = pg_catalog, pg_temp;

-- Handlers write these tables through their functions only, so that the rules always apply.
alter function ibid.link_reference(text, text, text, text) security definer
	set search_path = pg_catalog, pg_temp;
alter function ibid.post(text, jsonb, date, text) security definer set search_path = pg_catalog, pg_temp;
alter function ibid.move(text, text, text, jsonb, bigint) security definer
	set search_path = pg_catalog, pg_temp;

do $$ declare
	app constant boolean := to_regrole('ibid_app') is not null;
	service constant boolean := to_regrole('ibid_service') is not null;
	operator constant boolean := to_regrole('ibid_operator') is not null;
	eraser constant boolean := to_regrole('ibid_eraser') is not null;
	root record;
begin
	if app then
		revoke all on all tables in schema ibid from ibid_app;
		revoke all on all functions in schema ibid, ibid_internal from ibid_app;
		grant usage on schema ibid_internal to ibid_app;
		grant execute on function ibid.command_begin(text, text, text, text, text, text, text, text, text, int,
				text, text),
			ibid.command_complete(uuid, int, text, text, text, boolean),
			ibid.command_reject(uuid, text, int, text), ibid.command_fail(uuid, text),
			ibid.emit(text, text, text, text, bigint, text, uuid),
			ibid.emit(text, text, text, json, bigint, text, uuid),
			ibid.emit(text, text, text, jsonb, bigint, text, uuid),
			ibid.emit_json(text, text, text, text, bigint, text),
			ibid_internal.emit_for_caller(text, text, text, text, bigint, text, uuid),
			ibid.canonical(text), ibid.contract_of(text, int), ibid.tenants(),
			ibid.fingerprint(json, text, text, text, text, text) to ibid_app;
		grant select on ibid.contract to ibid_app;
		grant select on ibid.outbox_status to ibid_app;
		grant execute on function ibid.outbox_states() to ibid_app; -- and who holds a lane, which is nobody's data:
		grant select (destination, lane, relay, lease_until) on ibid.relay_lane to ibid_app;
	end if;
	if service then
		grant usage on schema ibid, ibid_internal to ibid_service;
		grant execute on all functions in schema ibid, ibid_internal to ibid_service;
		revoke execute on function ibid.grant_tenant(text, text), ibid.revoke_tenant(text, text)
			from ibid_service;
		grant select on all tables in schema ibid to ibid_service;
		grant insert on ibid.contract to ibid_service;
	end if;
	if operator then
		grant usage on schema ibid_internal to ibid_operator;
		grant select on all tables in schema ibid to ibid_operator;
		grant execute on function ibid.outbox_states(), ibid_internal.microseconds(timestamptz) to ibid_operator;
		grant execute on function ibid_internal.cursor_snapshot(text), ibid_internal.names_destination(text, text),
			ibid_internal.outbox_news(smallint, pg_snapshot, pg_snapshot), ibid_internal.outbox_window(text, smallint, pg_snapshot, bigint),
			ibid_internal.measure_outbox(int, bigint) to ibid_operator;
	end if;
	if eraser then
		grant usage on schema ibid, ibid_internal to ibid_eraser;
		grant select on all tables in schema ibid to ibid_eraser;
		grant execute on function ibid.outbox_states(), ibid_internal.microseconds(timestamptz) to ibid_eraser;
		grant execute on function ibid_internal.erase_commands(uuid, text, uuid, uuid, text, text, text, int, text, text,
			text, timestamptz) to ibid_eraser;
	end if;
	for root in
		select c.oid::regclass as name, c.relname from pg_class as c
		join pg_attribute as a on a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped
		where c.relnamespace = 'ibid'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
			and c.relname not in ('tenant_role', 'open_command', 'token')
	loop
		execute format('alter table %s enable row level security', root.name);
		if app then
			execute format('grant select on %s to ibid_app', root.name);
			execute format('create policy own_tenants on %s for select to ibid_app
				using (tenant in (select ibid.tenants()))', root.name);
		end if;
		if operator then
			execute format('create policy operators on %s for select to ibid_operator using (true)', root.name);
		end if;
		if eraser then
			execute format('create policy erasers on %s for select to ibid_eraser using (true)', root.name);
		end if;
		if service then
			execute format('grant insert on %s to ibid_service', root.name);
			execute format('create policy services on %s to ibid_service using (true) with check (true)',
				root.name);
		end if;
	end loop;
	if service then -- who runs commands does not forget them
		revoke insert on ibid.erasure from ibid_service;
		revoke execute on function ibid_internal.erase_commands(uuid, text, uuid, uuid, text, text, text, int, text, text,
			text, timestamptz) from ibid_service;
	end if;
	if service then -- never an identity; what is evidence is never edited (I3)
		grant update (id, state, scheme, contract_version, fingerprint, linked, status, resource_type,
			resource_id, reason, text, audit_id, attempts, client, actor, created_at, finished_at, expires_at,
			lease_token, lease_until, correlation_id, causation_id, traceparent, tracestate) on ibid.command to ibid_service;
		grant update (version, xid, before) on ibid.aggregate to ibid_service;
		grant insert, update (seen_at), delete on ibid.relay to ibid_service;
		grant insert, update (relay, token, lease_until, cursor, moved_at, delivered) on ibid.relay_lane
			to ibid_service;
		grant insert, update (cursor) on ibid.outbox_scan to ibid_service;
		grant insert, update (written, behind, passed), delete on ibid.outbox_count to ibid_service;
		grant update (state, attempts, failure, reason, why, next_at, passed), delete on ibid.delivery_hold
			to ibid_service;
		grant delete on ibid.pause to ibid_service;
		grant update (payload), delete on ibid.payload to ibid_service;
		grant update (last_at, count) on ibid.evidence to ibid_service;
		grant update (first_at, last_at, count, unlisted) on ibid.duplicate to ibid_service;
		grant update (state, resolved_at, resolution, resolved_by, note, owner, assignee) on ibid.exception to ibid_service;
		grant update (decision, decided_by, decided_token, decided_reason, decided_at, parameters)
			on ibid.approval to ibid_service;
		revoke insert on ibid.external_reference, ibid.journal_group, ibid.journal_line, ibid.machine_state,
			ibid.machine_history from ibid_service;
	end if;
	-- Tokens are the server's and of those who make them: who reads a tenant does not read its hashes.
	alter table ibid.token enable row level security;
	if operator then
		revoke all on ibid.token from ibid_operator;
	end if;
	if eraser then
		revoke all on ibid.token from ibid_eraser;
	end if;
	if service then
		grant insert, update (revoked_at, revoked_by) on ibid.token to ibid_service;
		create policy services on ibid.token to ibid_service using (true) with check (true);
	end if;
	if to_regrole('ibid_migrator') is not null then
		grant update (revoked_at, revoked_by) on ibid.token to ibid_migrator;
		grant usage on schema ibid_internal to ibid_migrator;
		grant execute on all functions in schema ibid, ibid_internal to ibid_migrator;
		grant select, insert on all tables in schema ibid to ibid_migrator;
		revoke insert on ibid.erasure from ibid_migrator;
		revoke execute on function ibid_internal.erase_commands(uuid, text, uuid, uuid, text, text, text, int, text, text,
			text, timestamptz) from ibid_migrator;
		grant delete on ibid.tenant_role, ibid.machine_move to ibid_migrator;
		for root in select c.oid::regclass as name from pg_class as c
			where c.relnamespace = 'ibid'::regnamespace and c.relrowsecurity loop
			execute format('create policy migrators on %s to ibid_migrator using (true) with check (true)',
				root.name);
		end loop;
	end if;
end $$;
