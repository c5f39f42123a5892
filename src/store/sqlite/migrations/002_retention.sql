-- 002_retention: what happens to commands after their time, and who sends them again.

-- How often a command came again. Written in batches, beside the commands: a duplicate itself writes
-- nothing. `unlisted`: of those that were to be kept one by one and are only counted.
create table ibid_duplicate (
  tenant text not null,
  command_id text not null,
  first_us integer not null,
  last_us integer not null,
  count integer not null,
  unlisted integer not null,
  primary key (tenant, command_id)
) strict, without rowid;

-- Each of them: who, when, what it was told; where the contract says evidence: each.
create table ibid_duplicate_seen (
  n integer primary key,
  tenant text not null,
  command_id text not null,
  at_us integer not null,
  client text not null,
  actor text not null,
  decision text not null,
  fingerprint blob not null check (length(fingerprint) = 32)
) strict;
create index ibid_duplicate_seen_command on ibid_duplicate_seen (tenant, command_id, n);

-- Retention is the one that may delete (I3): it puts a row here and takes it away in its transaction.
create table ibid_retention (
  one integer primary key check (one = 1)
) strict;
drop trigger ibid_event_is_never_deleted;
create trigger ibid_event_is_never_deleted before delete on ibid_event
when not exists (select 1 from ibid_retention)
begin
  select raise(abort, 'events are never deleted (I3)');
end;
drop trigger ibid_audit_is_never_deleted;
create trigger ibid_audit_is_never_deleted before delete on ibid_audit
when not exists (select 1 from ibid_retention)
begin
  select raise(abort, 'audit entries are never deleted (I3)');
end;
