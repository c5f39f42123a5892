-- 002_command: commands that are claimed in one transaction and finished in another, and commands in a transaction of
-- the caller's.
--
-- The files of schema 2 only add to schema 1, so that the binary of schema 1 goes on working while the next one is rolled
-- out.

alter table ibid_command add column lease_token integer; -- of the worker that may finish it
alter table ibid_command add column lease_until_us integer; -- null: no end: locked, not free
-- Kept for commands IN_PROGRESS, so that a recovery can use them, and for outcomes other than success. A COMPLETED
-- command has them in its audit entry, and nulls here.
alter table ibid_command add column correlation_id text;
alter table ibid_command add column causation_id text;
alter table ibid_command add column traceparent text;
alter table ibid_command add column tracestate text;
-- Few rows: only commands without an outcome. Not by tenant, because recovery reads all of them. Unknown commands share
-- this index, so that they can be counted without reading the table.
create index ibid_command_lease on ibid_command (lease_until_us)
  where state = 'IN_PROGRESS' or state = 'UNKNOWN';

-- ---- In the caller's transaction ---------------------------------------------------------------

-- Has no rows and can't have any.
create table ibid_never (
  command_id text primary key check (false)
) strict, without rowid;

-- Commands that are begun and not finished. The foreign key can't be satisfied, and SQLite checks it at the commit: the
-- commit is refused until the row is deleted. So no row is ever committed: a visible row was inserted by this very
-- transaction.
create table ibid_open_command (
  tenant text not null,
  command_id text not null references ibid_never (command_id) deferrable initially deferred,
  primary key (tenant, command_id)
) strict, without rowid;
