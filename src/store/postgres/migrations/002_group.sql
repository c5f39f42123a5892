-- 002_group: commands that share a transaction.

create function ibid.group_settle() returns void language plpgsql as $$
declare
	put_off text;
begin
	set constraints all immediate;
	select string_agg(distinct format('%I.%I', space.nspname, it.conname), ', ') into put_off
	from pg_constraint as it join pg_namespace as space on space.oid = it.connamespace
	where it.condeferred;
	if put_off is not null then
		execute 'set constraints ' || put_off || ' deferred';
	end if;
end $$;
comment on function ibid.group_settle() is
	'checks what was deferred so far in this transaction; what comes next is deferred as declared';
