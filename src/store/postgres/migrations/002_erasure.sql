-- 002_erasure: erasure of personal data on request, and its record.
--
-- Identity, state, fingerprint, audit entries, ids and times stay: a duplicate is recognised as before. Payload, body,
-- texts, names and the payloads of events are erased.

create table ibid.erasure (
	tenant text collate "C",
	id uuid,
	by text not null,
	reason text not null,
	selection text not null, -- JSON; a name in it is a digest
	at timestamptz not null,
	finished_at timestamptz, -- null: it was cut off, or goes on
	commands bigint not null,
	payloads bigint not null,
	bodies bigint not null,
	texts bigint not null,
	events bigint not null,
	names bigint not null,
	exceptions bigint not null,
	primary key (tenant, id)
);
comment on table ibid.erasure is 'who had what erased, when, why and how much: one row per erasure';

create function ibid_internal.erased_name(name text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
	select case when name <> '' then 'erased' else name end
$$;
comment on function ibid_internal.erased_name(text) is 'what stands for a name that was erased; none stays none';

-- The commands in the window that the erasure selects: one command (no filter), or those of a resource or of an actor.
create function ibid_internal.erasable(of_tenant text, after uuid, upto uuid, of_type text, of_resource text,
	of_actor text)
returns setof uuid language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
	return query select c.id from ibid.command as c
	left join ibid.audit as a on a.tenant = c.tenant and a.id = c.id
	where c.tenant collate "POSIX" = of_tenant and c.id > after and c.id <= upto
		and (of_type is null and of_actor is null
			or c.resource_type = of_type and c.resource_id = of_resource
			or a.resource_type = of_type and a.resource_id = of_resource
			or c.actor = of_actor or a.actor = of_actor);
end $$;
comment on function ibid_internal.erasable(text, uuid, uuid, text, text, text) is
	'the commands of a window of ids that an erasure is about';

-- The number of them that have something to erase.
create function ibid_internal.erasable_count(of_tenant text, ids uuid[], of_actor text) returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
	return (select count(*) from ibid.command as c
	where c.tenant collate "POSIX" = of_tenant and c.id = any (ids) and (c.text is not null
		or of_actor is not null
		or exists (select from ibid.payload as p where p.tenant = c.tenant and p.command_id = c.id)
		or exists (select from ibid.answer as a where a.tenant = c.tenant and a.command_id = c.id)
		or exists (select from ibid.evidence as e where e.tenant = c.tenant and e.command_id = c.id
			and (e.client not in ('', 'erased') or e.actor not in ('', 'erased')))
		or exists (select from ibid.duplicate_seen as d where d.tenant = c.tenant and d.command_id = c.id
			and (d.client not in ('', 'erased') or d.actor not in ('', 'erased')))
		or exists (select from ibid.event as e where e.tenant = c.tenant and e.command_id = c.id
			and e.id between overlay(c.id::text placing '0000' from 33)::uuid
				and overlay(c.id::text placing 'ffff' from 33)::uuid and e.payload <> '{"erased":true}')
		or exists (select from ibid.exception as x where x.tenant = c.tenant and x.subject_type = 'command'
			and x.subject_id = c.id::text and (x.detail is not null or x.note is not null))));
end $$;
comment on function ibid_internal.erasable_count(text, uuid[], text) is 'of how many commands something would be erased';

-- Erases the senders' names of conflicts. Rows that differ only in names become one.
create function ibid_internal.erase_evidence(of_tenant text, ids uuid[], after uuid, upto uuid, of_actor text)
returns bigint language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	erased bigint;
begin
	with old as (
		delete from ibid.evidence as e
		where e.tenant = of_tenant and e.command_id > after and e.command_id <= upto
			and (e.command_id = any (ids) or e.actor = of_actor)
			and (e.client not in ('', 'erased') or e.actor not in ('', 'erased'))
		returning e.*),
	put as (
		insert into ibid.evidence as e (tenant, command_id, fingerprint, client, actor, first_at, last_at, count)
		select o.tenant, o.command_id, o.fingerprint, ibid_internal.erased_name(o.client), ibid_internal.erased_name(o.actor),
			min(o.first_at), max(o.last_at), sum(o.count)
		from old as o group by 1, 2, 3, 4, 5
		on conflict (tenant, command_id, fingerprint, client, actor) do update
			set first_at = least(e.first_at, excluded.first_at), last_at = greatest(e.last_at, excluded.last_at),
				count = e.count + excluded.count)
	select count(*) into erased from old;
	return erased;
end $$;
comment on function ibid_internal.erase_evidence(text, uuid[], uuid, uuid, text) is
	'erases the senders of conflicts; what is left of them is counted together';

-- One step: at most `batch` commands after at_id; or the single command between at_id and `single`. Commands without an
-- outcome are not changed, but counted. The record of the erasure commits with its changes.
create function ibid_internal.erase_commands(erasure uuid, of_tenant text, inout at_id uuid, single uuid, of_type text,
	of_resource text, of_actor text, batch int, by_whom text, why text, selected text, now timestamptz,
	out done boolean, out commands bigint, out payloads bigint, out bodies bigint, out texts bigint,
	out events bigint, out names bigint, out exceptions bigint, out left_alone bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	upto uuid := single;
	after uuid := at_id;
	ids uuid[];
	answered uuid[];
	more bigint;
	marked text;
begin
	commands := 0; payloads := 0; bodies := 0; texts := 0; events := 0; names := 0; exceptions := 0; left_alone := 0;
	done := single is not null;
	if upto is null then
		select w.id into upto from (
			select c.id from ibid.command as c
			where c.tenant collate "POSIX" = of_tenant and c.id > after order by c.id limit batch) as w
		order by w.id desc limit 1;
		if upto is null then
			done := true;
			update ibid.erasure as e set finished_at = now where e.tenant = of_tenant and e.id = erasure;
			return;
		end if;
	end if;
	at_id := upto;
	marked := set_config('ibid.erasing', pg_current_xact_id()::text, true);
	perform from ibid.command as c
	where c.tenant collate "POSIX" = of_tenant
		and c.id in (select ibid_internal.erasable(of_tenant, after, upto, of_type, of_resource, of_actor))
	order by c.id for update;
	select array_agg(c.id) filter (where c.state in ('COMPLETED', 'REJECTED', 'FAILED')),
		count(*) filter (where c.state not in ('COMPLETED', 'REJECTED', 'FAILED'))
	into ids, left_alone from ibid.command as c
	where c.tenant collate "POSIX" = of_tenant
		and c.id in (select ibid_internal.erasable(of_tenant, after, upto, of_type, of_resource, of_actor));
	ids := coalesce(ids, '{}');
	commands := ibid_internal.erasable_count(of_tenant, ids, of_actor);

	delete from ibid.payload as p where p.tenant = of_tenant and p.command_id = any (ids);
	get diagnostics payloads = row_count;
	with gone as (delete from ibid.answer as a where a.tenant = of_tenant and a.command_id = any (ids)
		returning a.command_id)
	select count(*), array_agg(g.command_id) into bodies, answered from gone as g;
	update ibid.command as c set reason = 'ERASED'
	where c.tenant collate "POSIX" = of_tenant and c.id = any (answered) and c.state = 'COMPLETED';
	update ibid.command as c set text = null
	where c.tenant collate "POSIX" = of_tenant and c.id = any (ids) and c.text is not null;
	get diagnostics texts = row_count;
	update ibid.event as e set payload = '{"erased":true}'
	from unnest(ids) as i (id)
	where e.tenant = of_tenant and e.command_id = i.id and e.payload <> '{"erased":true}'
		and e.id between overlay(i.id::text placing '0000' from 33)::uuid
			and overlay(i.id::text placing 'ffff' from 33)::uuid;
	get diagnostics events = row_count;
	names := ibid_internal.erase_evidence(of_tenant, ids, after, upto, of_actor);
	update ibid.duplicate_seen as d
	set client = ibid_internal.erased_name(d.client), actor = ibid_internal.erased_name(d.actor)
	where d.tenant = of_tenant and d.command_id > after and d.command_id <= upto
		and (d.command_id = any (ids) or d.actor = of_actor)
		and (d.client not in ('', 'erased') or d.actor not in ('', 'erased'));
	get diagnostics more = row_count;
	names := names + more;
	update ibid.exception as x set detail = null, note = null, service_answer = null,
		source = case when of_actor is null then x.source else ibid_internal.erased_name(x.source) end
	where x.tenant = of_tenant and x.subject_type = 'command' and x.subject_id = any (ids::text[])
		and (x.detail is not null or x.note is not null
			or of_actor is not null and x.source not in ('', 'erased'));
	get diagnostics exceptions = row_count;
	if of_actor is not null then
		update ibid.command as c set client = ibid_internal.erased_name(c.client), actor = ibid_internal.erased_name(c.actor)
		where c.tenant collate "POSIX" = of_tenant and c.id = any (ids);
		get diagnostics more = row_count;
		names := names + more;
		update ibid.audit as a set client = ibid_internal.erased_name(a.client), actor = ibid_internal.erased_name(a.actor)
		where a.tenant = of_tenant and a.id = any (ids);
		get diagnostics more = row_count;
		names := names + more;
	end if;
	marked := set_config('ibid.erasing', '', true);
	if commands + names > 0 then
		insert into ibid.erasure as e (tenant, id, by, reason, selection, at, commands, payloads, bodies, texts,
			events, names, exceptions)
		values (of_tenant, erasure, by_whom, why, selected, now, commands, payloads, bodies, texts, events, names,
			exceptions)
		on conflict (tenant, id) do update set commands = e.commands + excluded.commands,
			payloads = e.payloads + excluded.payloads, bodies = e.bodies + excluded.bodies,
			texts = e.texts + excluded.texts, events = e.events + excluded.events,
			names = e.names + excluded.names, exceptions = e.exceptions + excluded.exceptions;
	end if;
	if done then
		update ibid.erasure as e set finished_at = now where e.tenant = of_tenant and e.id = erasure;
	end if;
end $$;
comment on function ibid_internal.erase_commands(uuid, text, uuid, uuid, text, text, text, int, text, text, text,
	timestamptz) is 'one bounded step of an erasure';
