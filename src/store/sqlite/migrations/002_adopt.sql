-- 002_adopt: commands in a transaction that the caller owns.

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
