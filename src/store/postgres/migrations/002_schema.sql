-- 002_schema: what the files of schema 2 have in common. It runs before them.
--
-- The files of schema 2 run in one transaction and only add to schema 1, apart from two CHECKs (002_command), so that the
-- binary of schema 1 goes on working while the next one is rolled out.
--
-- Schema ibid holds what people and programs call, select from and grant; ibid_internal the functions that these are
-- made of. Six of schema 1 stay in ibid until schema 3, because the binaries of schema 1 call them there.

-- Every command touches this table first. Commands that run now finish before the migration locks other tables, and
-- later commands wait here while they hold no lock. So a migration and a command can't deadlock.
lock table ibid.command in access exclusive mode;

create schema ibid_internal;
comment on schema ibid_internal is 'what the functions of schema ibid are made of: nothing here is for callers, and all may change';

-- The owner of a table can write any time into it. A time beyond bigint would fail every query that reads it, so times
-- outside the years 1 to 9999, also infinite ones, are read as the last or the first instant of that range.
create function ibid_internal.microseconds(at timestamptz) returns bigint language sql stable as $$
	select (extract(epoch from case
		when at > timestamptz '9999-12-31 23:59:59.999999+00' then timestamptz '9999-12-31 23:59:59.999999+00'
		when at < timestamptz '0001-01-01 00:00:00+00' then timestamptz '0001-01-01 00:00:00+00'
		else at end) * 1000000)::bigint
$$;
comment on function ibid_internal.microseconds(timestamptz) is 'microseconds since 1970; of any time, also an infinite one';

create function ibid_internal.uuid_v7() returns uuid
language plpgsql volatile parallel safe as $$
declare
	ms text := lpad(to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint), 12, '0');
begin -- a v4 with the milliseconds in its first six bytes and another version
	return left(ms, 8) || '-' || right(ms, 4) || '-7' || substr(gen_random_uuid()::text, 16);
end $$;
comment on function ibid_internal.uuid_v7() is 'a new id, in the order of time';
