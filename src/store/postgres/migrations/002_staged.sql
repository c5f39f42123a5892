-- 002_staged: commands that are claimed in one transaction and finished in another.

alter table ibid.command
	add column lease_token bigint, -- of the worker that may finish it; kept when it has
	add column lease_until timestamptz; -- null: no end, which is locked and not free
-- Few rows: only what has no outcome. Not by tenant, because recovery asks for all of them. What is unknown has no
-- lease and stands behind the others; it is in this index, and not in one of its own, so that it can be counted
-- without reading the table and a new command still meets no more indexes.
create index command_lease on ibid.command (lease_until) where state in ('IN_PROGRESS', 'UNKNOWN');
