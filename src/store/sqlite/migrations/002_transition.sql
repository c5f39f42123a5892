-- 002_transition: state machines: allowed moves, the state of each subject, and its history.

-- For all tenants. The state before the first move is empty.
create table ibid_machine_move (
  machine text not null,
  from_state text not null,
  to_state text not null,
  primary key (machine, from_state, to_state)
) strict, without rowid;

-- Moved by compare-and-set; version: how many moves it has made. Attributes are canonical JSON: equal
-- attributes are equal texts.
create table ibid_machine_state (
  tenant text not null,
  machine text not null,
  subject_id text not null,
  state text not null,
  version integer not null,
  attributes text not null,
  command_id text not null check (length(command_id) = 36),
  at_us integer not null,
  primary key (tenant, machine, subject_id)
) strict, without rowid;

-- One row per accepted move, never edited (I3).
create table ibid_machine_history (
  tenant text not null,
  machine text not null,
  subject_id text not null,
  version integer not null,
  from_state text not null,
  to_state text not null,
  attributes text not null,
  command_id text not null check (length(command_id) = 36),
  at_us integer not null,
  primary key (tenant, machine, subject_id, version)
) strict, without rowid;
create trigger ibid_machine_history_is_never_replaced before insert on ibid_machine_history
when exists (select 1 from ibid_machine_history where tenant = new.tenant
  and machine = new.machine and subject_id = new.subject_id and version = new.version)
begin
  select raise(rollback, 'moves are never replaced (I3)');
end;
create trigger ibid_machine_history_is_never_edited before update on ibid_machine_history
begin
  select raise(abort, 'moves are never edited (I3)');
end;
create trigger ibid_machine_history_is_never_deleted before delete on ibid_machine_history
begin
  select raise(abort, 'moves are never deleted (I3)');
end;
