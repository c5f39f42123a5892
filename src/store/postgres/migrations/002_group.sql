-- 002_group: commands that share a transaction.

-- A constraint that can't be put off again by its name stays immediate for those who come next: whoever
-- needs it deferred fails here, and is run alone.

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

-- What emit would be given, for who writes the events of many commands at once. In SQL, so that the planner puts
-- them into the statements that call them.
create function ibid_internal.emitted(aggregate_type text, aggregate_id text, type text, payload jsonb)
returns text[] language sql immutable as $$
	select array[aggregate_type, aggregate_id, type, payload::text]
$$;
create function ibid_internal.emitted(aggregate_type text, aggregate_id text, type text, payload json)
returns text[] language sql immutable as $$
	select array[aggregate_type, aggregate_id, type, payload::text]
$$;
create function ibid_internal.emitted(aggregate_type text, aggregate_id text, type text, payload text)
returns text[] language sql immutable as $$
	select array[aggregate_type, aggregate_id, type, payload::json::text] -- refuses what is not JSON
$$;
comment on function ibid_internal.emitted(text, text, text, jsonb) is 'an event as the library reads it; it writes nothing';
comment on function ibid_internal.emitted(text, text, text, json) is 'an event as the library reads it; it writes nothing';
comment on function ibid_internal.emitted(text, text, text, text) is 'an event as the library reads it; it writes nothing';
