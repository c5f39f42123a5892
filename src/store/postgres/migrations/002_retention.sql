-- 002_retention: what happens to commands when they expire, and to old partitions.

-- An expired command that may run again is replaced by a new one, with an id of its own, and its bodies are deleted.
-- Nothing else may delete a body, so the function has the right to do it, and its caller has not.
create function ibid_internal.forget_answers(of_tenant text, of_command uuid) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
	delete from ibid.answer as a
	where a.tenant = of_tenant and a.command_id = of_command
		and not exists (select from ibid.command as c
			where c.tenant collate "POSIX" = of_tenant and c.id = of_command);
	delete from ibid.payload as p
	where p.tenant = of_tenant and p.command_id = of_command
		and not exists (select from ibid.command as c
			where c.tenant collate "POSIX" = of_tenant and c.id = of_command)
$$;
comment on function ibid_internal.forget_answers(text, uuid) is
	'deletes the bodies and the payload of a command that is no more';

-- One step over the commands of one tenant that are older than `before`, in the order of their ids. Rows
-- whose key has expired lose body, payload and text; the rest of the row still answers a late duplicate. Rows whose audit
-- period is over, too, are deleted with all evidence. Commands without an outcome never change. Rows that another
-- session has locked are left to the next run.
create function ibid_internal.retain_commands(inout at_tenant text, inout at_id uuid, before uuid, now timestamptz,
	audit_us jsonb, batch int, out emptied bigint, out deleted bigint, out answers bigint,
	out evidence bigint, out duplicates bigint, out payloads bigint)
language plpgsql as $$
declare
	upto uuid;
	gone uuid[];
	old uuid[];
	removed bigint;
begin
	emptied := 0; deleted := 0; answers := 0; evidence := 0; duplicates := 0; payloads := 0;
	select w.id into upto from (
		select c.id from ibid.command as c
		where c.tenant collate "POSIX" = at_tenant and c.id > at_id and c.id < before
		order by c.id limit batch) as w
	order by w.id desc limit 1;
	if upto is null then
		select min(c.tenant) into at_tenant from ibid.command as c where c.tenant > at_tenant;
		at_id := '00000000-0000-0000-0000-000000000000';
		return;
	end if;
	gone := array(
		select c.id from ibid.command as c
		where c.tenant collate "POSIX" = at_tenant and c.id > at_id and c.id <= upto
			and c.state in ('COMPLETED', 'REJECTED', 'FAILED') and c.expires_at <= now
			and c.finished_at + (audit_us ->> c.operation)::bigint * interval '1 microsecond' <= now
		for update skip locked);
	old := array(
		select c.id from ibid.command as c
		where c.tenant collate "POSIX" = at_tenant and c.id > at_id and c.id <= upto
			and c.state in ('COMPLETED', 'REJECTED', 'FAILED') and c.expires_at <= now
			and c.id <> all (gone)
			and (c.text is not null or exists (select from ibid.answer as a
				where a.tenant = c.tenant and a.command_id = c.id) or exists (select from ibid.payload as p
				where p.tenant = c.tenant and p.command_id = c.id))
		for update skip locked);
	delete from ibid.answer as a where a.tenant = at_tenant and a.command_id = any (gone || old);
	get diagnostics answers = row_count;
	delete from ibid.payload as p where p.tenant = at_tenant and p.command_id = any (gone || old);
	get diagnostics payloads = row_count;
	update ibid.command as c set text = null
	where c.tenant collate "POSIX" = at_tenant and c.id = any (old) and c.text is not null;
	emptied := cardinality(old);
	delete from ibid.evidence as e where e.tenant = at_tenant and e.command_id = any (gone);
	get diagnostics evidence = row_count;
	delete from ibid.duplicate_seen as d where d.tenant = at_tenant and d.command_id = any (gone);
	get diagnostics duplicates = row_count;
	delete from ibid.duplicate as d where d.tenant = at_tenant and d.command_id = any (gone);
	get diagnostics removed = row_count;
	duplicates := duplicates + removed;
	delete from ibid.command as c
	where c.tenant collate "POSIX" = at_tenant and c.id = any (gone);
	get diagnostics deleted = row_count;
	at_id := upto;
end $$;
comment on function ibid_internal.retain_commands(text, uuid, uuid, timestamptz, jsonb, int) is
	'one bounded step of retention; at_tenant null: all done';

-- The first id of a UUIDv7 range.
create function ibid_internal.first_id(at timestamptz) returns uuid language sql stable as $$
	select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
$$;
comment on function ibid_internal.first_id(timestamptz) is 'no UUIDv7 of that time or later is smaller';

-- Makes partitions for the months to come, and for the current one while the default partition is empty: an INSERT
-- into the default one also has to check that no other partition should have the row. No partition can be made for a
-- month that has rows in the default partition, from before or by a clock that is ahead; they stay there. Waiting for
-- the lock blocks writers, so the wait is short; the next run tries again.
create function ibid_internal.make_partitions(months int, at timestamptz default now()) returns int
language plpgsql set lock_timeout = '3s' as $$
declare
	month timestamptz;
	part text;
	used boolean;
	made int := 0;
begin
	perform pg_advisory_xact_lock(hashtextextended('ibid.make_partitions', 0));
	for i in 0 .. months loop
		month := (date_trunc('month', at at time zone 'UTC') + i * interval '1 month') at time zone 'UTC';
		for part in select unnest(array['answer', 'payload', 'event', 'delivery', 'audit']) loop
			continue when to_regclass(format('ibid.%s_%s', part, to_char(month at time zone 'UTC', 'YYYYMM')))
				is not null;
			if i = 0 then
				execute format('select exists (select from ibid.%I)', part || '_default') into used;
				continue when used;
			end if;
			begin
				execute format('create table ibid.%I partition of ibid.%I for values from (%L) to (%L)',
					part || '_' || to_char(month at time zone 'UTC', 'YYYYMM'), part, ibid_internal.first_id(month),
					ibid_internal.first_id((month at time zone 'UTC' + interval '1 month') at time zone 'UTC'));
				-- Unlike those for rows, triggers for statements are not inherited.
				if part in ('event', 'delivery', 'audit') then
					execute format('create trigger %I before truncate on ibid.%I
						for each statement execute function ibid.refuse_edit()', part || '_is_never_emptied',
						part || '_' || to_char(month at time zone 'UTC', 'YYYYMM'));
				end if;
				made := made + 1;
			exception when check_violation then
				raise notice 'no partition for %: rows of that month are in the default partition', month;
			end;
		end loop;
	end loop;
	return made;
end $$;
comment on function ibid_internal.make_partitions(int, timestamptz) is 'makes the partitions of this month and the next';

-- Drops one partition that is not needed any more, or only counts all of them: audit entries after the audit period,
-- evidence of the delivery of removed events, answers and payloads that are all deleted. A month is dropped
-- as a whole or not at all. Events are removed by ibid_internal.drop_event_month.
create function ibid_internal.drop_partition(now timestamptz, audit_us bigint, only_count boolean)
returns table (kind text, removed bigint) language plpgsql set lock_timeout = '3s' as $$
declare
	part record;
	needed boolean;
begin
	perform pg_advisory_xact_lock(hashtextextended('ibid.make_partitions', 0));
	for part in
		select p.relname as root, c.relname as name,
			to_timestamp(right(c.relname, 6) || '01 +00', 'YYYYMMDD TZH') + interval '1 month' as ends
		from pg_inherits as i
		join pg_class as c on c.oid = i.inhrelid
		join pg_class as p on p.oid = i.inhparent
		where p.relnamespace = 'ibid'::regnamespace and p.relname in ('answer', 'payload', 'delivery', 'audit')
			and c.relname ~ '_[0-9]{6}$'
		order by c.relname
	loop
		continue when part.ends > now;
		execute case part.root
			when 'audit' then format('select $1 is null or exists (select from ibid.%I where at > $1)', part.name)
			when 'delivery' then
				format('select to_regclass(%2$L) is not null or exists (select from ibid.%1$I as d
					join ibid.event as e on e.tenant = d.tenant and e.id = d.event_id)', part.name,
					'ibid.' || replace(part.name, 'delivery', 'event'))
			else format('select exists (select from ibid.%I)', part.name) end
			into needed
			using case part.root when 'audit' then now - audit_us * interval '1 microsecond' end;
		continue when needed;
		execute format('select count(*) from ibid.%I', part.name) into removed;
		kind := part.root;
		if not only_count then
			execute format('drop table ibid.%I', part.name);
		end if;
		return next;
		exit when not only_count;
	end loop;
end $$;
comment on function ibid_internal.drop_partition(timestamptz, bigint, boolean) is
	'drops one month of audit entries, payloads or answers that has had its time';

select ibid_internal.make_partitions(3);

