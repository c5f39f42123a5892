-- 002_staged: commands that are claimed in one transaction and finished in another.

alter table ibid.command
	add column lease_token bigint, -- of the worker that may finish it; kept when it has
	add column lease_until timestamptz; -- null: no end, which is locked and not free
-- Few rows: only what is in progress. Not by tenant, because recovery asks for all of them.
create index command_lease on ibid.command (lease_until) where state = 'IN_PROGRESS';
