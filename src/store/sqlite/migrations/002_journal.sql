-- 002_journal: double-entry groups, appended once per source operation, never edited (I3).

create table ibid_journal_group (
  tenant text not null,
  id text not null check (length(id) = 36),
  source text not null,
  command_id text not null check (length(command_id) = 36),
  posting_date text not null check (length(posting_date) = 10),
  description text,
  at_us integer not null,
  primary key (tenant, id)
) strict, without rowid;
create unique index ibid_journal_group_source on ibid_journal_group (tenant, source);

-- Amounts are exact decimals in their shortest notation: equal amounts are equal texts.
create table ibid_journal_line (
  tenant text not null,
  group_id text not null,
  line integer not null check (line > 0),
  account text not null,
  direction text not null check (direction in ('DEBIT', 'CREDIT')),
  amount text not null,
  currency text not null,
  primary key (tenant, group_id, line),
  foreign key (tenant, group_id) references ibid_journal_group (tenant, id)
) strict, without rowid;
create index ibid_journal_line_account on ibid_journal_line (tenant, account, group_id);

create trigger ibid_journal_group_is_never_replaced before insert on ibid_journal_group
when exists (select 1 from ibid_journal_group where tenant = new.tenant and id = new.id)
  or exists (select 1 from ibid_journal_group where tenant = new.tenant and source = new.source)
begin
  select raise(rollback, 'journal groups are never replaced (I3)');
end;
create trigger ibid_journal_group_is_never_edited before update on ibid_journal_group
begin
  select raise(abort, 'journal groups are never edited (I3)');
end;
create trigger ibid_journal_group_is_never_deleted before delete on ibid_journal_group
begin
  select raise(abort, 'journal groups are never deleted (I3)');
end;
create trigger ibid_journal_line_is_never_replaced before insert on ibid_journal_line
when exists (select 1 from ibid_journal_line
  where tenant = new.tenant and group_id = new.group_id and line = new.line)
begin
  select raise(rollback, 'journal lines are never replaced (I3)');
end;
create trigger ibid_journal_line_is_never_edited before update on ibid_journal_line
begin
  select raise(abort, 'journal lines are never edited (I3)');
end;
create trigger ibid_journal_line_is_never_deleted before delete on ibid_journal_line
begin
  select raise(abort, 'journal lines are never deleted (I3)');
end;
