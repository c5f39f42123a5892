-- 002_group: commands that share a transaction.

-- A constraint that can't be put off again by its name stays immediate for those who come next: whoever
-- needs it deferred fails here, and is run alone.

create function ibid.group_settle() returns void language plpgsql as $$
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
comment on function ibid.group_settle() is
	'checks what was deferred so far in this transaction; what comes next is deferred as declared';
