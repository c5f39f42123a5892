-- 002_duplicate: how often a command was sent again, and by which client and actor.

-- Written in batches by a thread of its own: a duplicate itself writes nothing. `unlisted`: duplicates that should
-- have been listed in ibid_duplicate_seen and were only counted.
create table ibid_duplicate (
  tenant text not null,
  command_id text not null,
  first_us integer not null,
  last_us integer not null,
  count integer not null,
  unlisted integer not null,
  primary key (tenant, command_id)
) strict, without rowid;

-- Each duplicate with its sender, its time and its answer, if the contract says evidence: each.
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
