-- 002_command: commands that are claimed in one transaction and finished in another, and commands in a transaction of
-- the caller's.
--
-- The files of schema 2 only add to schema 1, so that the binary of schema 1 goes on working while the next one is rolled
-- out.

alter table ibid_command add column lease_token integer; -- of the worker that may finish it
alter table ibid_command add column lease_until_us integer; -- null: no end: locked, not free
-- Of a command IN_PROGRESS, so that recovery goes on with them, and of an outcome that is no success. A command
-- that is COMPLETED has them in its audit entry, and nulls here.
alter table ibid_command add column correlation_id text;
alter table ibid_command add column causation_id text;
alter table ibid_command add column traceparent text;
alter table ibid_command add column tracestate text;
-- Few rows: only what has no outcome. Not by tenant, because recovery asks for all of them. What is unknown is
-- in this index, and not in one of its own, so that it can be counted without reading the table.
create index ibid_command_lease on ibid_command (lease_until_us)
  where state = 'IN_PROGRESS' or state = 'UNKNOWN';

-- ---- In the caller's transaction ---------------------------------------------------------------

-- Has no rows and can't get any.
create table ibid_never (
  command_id text primary key check (false)
) strict, without rowid;

-- Begun and not finished. The foreign key can't be satisfied, and is looked at when the transaction ends:
-- a commit is refused until the row is gone. So no row is ever committed, and whoever sees one began it in
-- this very transaction.
create table ibid_open_command (
  tenant text not null,
  command_id text not null references ibid_never (command_id) deferrable initially deferred,
  primary key (tenant, command_id)
) strict, without rowid;
