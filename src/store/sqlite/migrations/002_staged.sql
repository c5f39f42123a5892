-- 002_staged: commands that are claimed in one transaction and finished in another.

alter table ibid_command add column lease_token integer; -- of the worker that may finish it
alter table ibid_command add column lease_until_us integer; -- null: no end: locked, not free
-- Few rows: only what has no outcome. Not by tenant, because recovery asks for all of them. What is unknown is
-- in this index, and not in one of its own, so that it can be counted without reading the table.
create index ibid_command_lease on ibid_command (lease_until_us)
  where state = 'IN_PROGRESS' or state = 'UNKNOWN';
