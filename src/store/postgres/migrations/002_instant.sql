-- 002_instant: times as ibid reads them.

-- Owners can write any time, and what no bigint holds would fail the query that comes to it: for good, where it is read in
-- turn. So infinity and the like are the last moment that has a year of four digits, or the first one.
create function ibid_internal.microseconds(at timestamptz) returns bigint language sql stable as $$
	select (extract(epoch from case
		when at > timestamptz '9999-12-31 23:59:59.999999+00' then timestamptz '9999-12-31 23:59:59.999999+00'
		when at < timestamptz '0001-01-01 00:00:00+00' then timestamptz '0001-01-01 00:00:00+00'
		else at end) * 1000000)::bigint
$$;
comment on function ibid_internal.microseconds(timestamptz) is 'microseconds since 1970; of any time, also an infinite one';
