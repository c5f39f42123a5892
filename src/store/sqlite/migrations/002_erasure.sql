-- 002_erasure: erasure of personal data on request, and its record.

-- One row per erasure: by whom, when, why, the selection and the counts. A name in `selection` is a digest.
create table ibid_erasure (
  tenant text not null,
  id text not null check (length(id) = 36),
  by text not null,
  reason text not null,
  selection text not null,
  at_us integer not null,
  finished_us integer not null default 0, -- 0: it was cut off, or goes on
  commands integer not null,
  payloads integer not null,
  bodies integer not null,
  texts integer not null,
  events integer not null,
  names integer not null,
  exceptions integer not null,
  primary key (tenant, id)
) strict, without rowid;

-- The commands of the current step of an erasure: inserted and deleted in its transaction.
create table ibid_erasing (
  command_id text primary key
) strict, without rowid;
