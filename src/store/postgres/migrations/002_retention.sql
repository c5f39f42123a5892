-- 002_retention: what happens to commands after their time, and who sends them again.

-- An expired command that may run again gives its place to a new one, with an id of its own. Its bodies go
-- with it; nothing else may delete one, so the right to do it is the function's and not its caller's.
create function ibid.forget_answers(of_tenant text, of_command uuid) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
	delete from ibid.answer as a
	where a.tenant = of_tenant and a.command_id = of_command
		and not exists (select from ibid.command as c
			where c.tenant collate "POSIX" = of_tenant and c.id = of_command)
$$;
comment on function ibid.forget_answers(text, uuid) is 'deletes the bodies of a command that is no more';

-- Written in batches, beside the commands: a duplicate itself writes nothing.
create table ibid.duplicate (
	tenant text collate "C",
	command_id uuid,
	first_at timestamptz not null,
	last_at timestamptz not null,
	count bigint not null,
	unlisted bigint not null, -- of those that were to be kept one by one
	primary key (tenant, command_id)
) with (fillfactor = 80);
comment on table ibid.duplicate is 'how often a command came again';

create table ibid.duplicate_seen (
	tenant text collate "C",
	command_id uuid,
	n bigint generated always as identity,
	at timestamptz not null,
	client text not null,
	actor text not null,
	decision text not null,
	fingerprint bytea not null,
	primary key (tenant, command_id, n)
);
comment on table ibid.duplicate_seen is
	'each duplicate: who, when, what it was told; where the contract says evidence: each';

do $$ begin
	if to_regrole('ibid_app') is not null then
		grant update (id) on ibid.command to ibid_app;
		grant select, insert, update on ibid.duplicate to ibid_app;
		grant select, insert on ibid.duplicate_seen to ibid_app;
	end if;
	if to_regrole('ibid_operator') is not null then
		grant select on ibid.duplicate, ibid.duplicate_seen to ibid_operator;
	end if;
	if to_regrole('ibid_migrator') is not null then
		grant select, insert on ibid.duplicate, ibid.duplicate_seen to ibid_migrator;
	end if;
end $$;
