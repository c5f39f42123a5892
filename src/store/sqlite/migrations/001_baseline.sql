-- 001_baseline: schema 1: commands, their answers, events, audit entries and evidence.
--
-- Stores are upgraded from this schema, so it stays as it is: what later schemas add is in their files.
--
-- Times are integers: microseconds since 1970, UTC (columns ..._us). UUIDs are lower-case text: 428 bytes
-- a command instead of 353 with blobs, and no measured difference in speed; whoever looks with the
-- sqlite3 shell, or joins with a business table, needs no conversion. Every unique index and every
-- lookup starts with the tenant (I9).

create table ibid_schema (
  version integer primary key,
  name text not null,
  at_us integer not null
) strict;

create table ibid_schema_file (
  name text primary key,
  digest blob not null check (length(digest) = 32),
  at_us integer not null
) strict, without rowid;

create table ibid_contract (
  kind text not null,
  name text not null,
  version integer not null,
  digest blob not null check (length(digest) = 32),
  text text not null,
  at_us integer not null,
  primary key (kind, name, version)
) strict;

-- One row per intent, written once, complete, at the end of its transaction (I1, I2).
create table ibid_command (
  tenant text not null,
  operation text not null,
  scope text not null,
  key text not null,
  id text not null check (length(id) = 36),
  -- Not `in (...)`: for a list of more than two SQLite builds a table in memory, at each insert.
  state text not null
    check (state = 'COMPLETED' or state = 'REJECTED' or state = 'FAILED' or state = 'IN_PROGRESS'
      or state = 'UNKNOWN' or state = 'ACCEPTED'),
  scheme integer not null,
  contract_version integer not null,
  fingerprint blob not null check (length(fingerprint) = 32),
  linked integer not null check (linked in (0, 1)),
  status integer not null,
  resource_type text,
  resource_id text,
  reason text,
  text text,
  audit_id text,
  attempts integer not null,
  client text,
  actor text,
  created_us integer not null,
  finished_us integer not null,
  expires_us integer not null,
  primary key (tenant, operation, scope, key),
  check ((state = 'COMPLETED') = (audit_id is not null))
) strict, without rowid;
create unique index ibid_command_id on ibid_command (tenant, id);

-- Bodies, only where the contract keeps them: the command table stays narrow.
create table ibid_answer (
  tenant text not null,
  command_id text not null,
  body text not null,
  primary key (tenant, command_id)
) strict;

-- The head of each aggregate: this row, not an index on the events, makes versions unique (I5).
create table ibid_aggregate (
  tenant text not null,
  type text not null,
  id text not null,
  version integer not null,
  primary key (tenant, type, id)
) strict, without rowid;

-- The outbox. One writer at a time makes the order of seq the order of commits. Debezium's event
-- router reads id, aggregatetype, aggregateid, type and payload under these names.
create table ibid_event (
  seq integer primary key check (seq > 0),
  id text not null check (length(id) = 36),
  aggregatetype text not null,
  aggregateid text not null,
  type text not null,
  payload text not null,
  tenant text not null,
  version integer not null check (version > 0),
  key text not null,
  command_id text not null,
  ordinal integer not null check (ordinal > 0),
  correlation_id text,
  causation_id text,
  topic text,
  partition_key text not null,
  headers text,
  created_us integer not null
) strict;
-- The n-th event of a command has its id with n in the last two bytes: unique, stable over retries, and
-- the events of a command are a range.
create unique index ibid_event_id on ibid_event (tenant, id);

-- Only keys that callers gave: "<command id>:<ordinal>" is unique as the id is.
create table ibid_event_key (
  tenant text not null,
  key text not null,
  event_id text not null,
  primary key (tenant, key)
) strict, without rowid;

-- One accepted intent, one entry: it has the id of its command.
create table ibid_audit (
  tenant text not null,
  id text not null check (length(id) = 36),
  command_id text not null,
  operation text not null,
  fact text not null,
  outcome text not null check (outcome in ('executed', 'linked')),
  contract_version integer not null,
  client text,
  actor text,
  resource_type text,
  resource_id text,
  correlation_id text,
  causation_id text,
  fingerprint blob not null check (length(fingerprint) = 32),
  at_us integer not null,
  primary key (tenant, id)
) strict, without rowid;

-- The same key with another payload: one row per command, payload and sender.
create table ibid_evidence (
  tenant text not null,
  command_id text not null,
  fingerprint blob not null check (length(fingerprint) = 32),
  client text not null,
  actor text not null,
  first_us integer not null,
  last_us integer not null,
  count integer not null,
  primary key (tenant, command_id, fingerprint, client, actor)
) strict, without rowid;

-- A row that is written to end an unknown outcome: see command.c (I7).
create table ibid_fence (
  one integer primary key check (one = 1),
  count integer not null
) strict;

-- INSERT OR REPLACE deletes without firing delete triggers, so the insert is what has to be refused.
-- Where SQLite is to choose seq, it is -1 here: no row has that. ROLLBACK, because with ABORT every insert
-- keeps a statement journal, which cost a tenth of a command.
create trigger ibid_event_is_never_replaced before insert on ibid_event
when exists (select 1 from ibid_event where seq = new.seq)
  or exists (select 1 from ibid_event where tenant = new.tenant and id = new.id)
begin
  select raise(rollback, 'events are never replaced (I3)');
end;
create trigger ibid_event_is_never_edited before update on ibid_event
begin
  select raise(abort, 'events are never edited (I3)');
end;
create trigger ibid_event_is_never_deleted before delete on ibid_event
begin
  select raise(abort, 'events are never deleted (I3)');
end;
create trigger ibid_audit_is_never_replaced before insert on ibid_audit
when exists (select 1 from ibid_audit where tenant = new.tenant and id = new.id)
begin
  select raise(rollback, 'audit entries are never replaced (I3)');
end;
create trigger ibid_audit_is_never_edited before update on ibid_audit
begin
  select raise(abort, 'audit entries are never edited (I3)');
end;
create trigger ibid_audit_is_never_deleted before delete on ibid_audit
begin
  select raise(abort, 'audit entries are never deleted (I3)');
end;
