-- 002_action: actions of people, and proposals that wait for a second person.

-- Evidence of one action: the person, the token, the role, the subject and the reason. It commits with the action.
create table ibid_action (
  tenant text not null,
  id text not null check (length(id) = 36),
  at_us integer not null,
  actor text not null, -- the token's client
  token text not null, -- its id
  role text not null, -- the one that allowed it
  action text not null,
  subject_type text not null,
  subject_id text not null,
  reason text not null check (reason <> ''),
  parameters text, -- JSON; of an answer only its digest
  approval_id text, -- where a second person was asked
  primary key (tenant, id)
) strict, without rowid;
create index ibid_action_subject on ibid_action (tenant, subject_type, subject_id, id);
create trigger ibid_action_is_never_replaced before insert on ibid_action
when exists (select 1 from ibid_action where tenant = new.tenant and id = new.id)
begin
  select raise(rollback, 'actions are never replaced (I3)');
end;
create trigger ibid_action_is_never_edited before update on ibid_action
begin
  select raise(abort, 'actions are never edited (I3)');
end;
create trigger ibid_action_is_never_deleted before delete on ibid_action
begin
  select raise(abort, 'actions are never deleted (I3)');
end;

-- What one person proposes and another decides. One waits per subject.
create table ibid_approval (
  tenant text not null,
  id text not null check (length(id) = 36),
  subject_type text not null,
  subject_id text not null,
  action text not null,
  parameters text, -- JSON; once it is decided, of an answer only its digest
  proposed_by text not null, -- the token's client
  proposed_token text not null, -- its id
  reason text not null,
  proposed_us integer not null,
  decision text check (decision in ('APPROVED', 'DECLINED', 'LAPSED')), -- null: it waits
  decided_by text,
  decided_token text, -- null: it lapsed
  decided_reason text,
  decided_us integer not null default 0,
  primary key (tenant, id),
  check ((decision is null) = (decided_us = 0) and (decision is null) = (decided_by is null)),
  check (decision <> 'APPROVED' or decided_by <> proposed_by)
) strict, without rowid;
create unique index ibid_approval_waiting on ibid_approval (tenant, subject_type, subject_id)
  where decided_us = 0;
create index ibid_approval_subject on ibid_approval (tenant, subject_type, subject_id, id);
create trigger ibid_approval_is_never_replaced before insert on ibid_approval
when exists (select 1 from ibid_approval where tenant = new.tenant and id = new.id)
begin
  select raise(rollback, 'approvals are never replaced (I3)');
end;
create trigger ibid_approval_is_decided_once before update on ibid_approval
when old.decided_us <> 0 or new.decided_us = 0
  or (new.tenant, new.id, new.subject_type, new.subject_id, new.action, new.proposed_by, new.proposed_token,
      new.reason, new.proposed_us)
    <> (old.tenant, old.id, old.subject_type, old.subject_id, old.action, old.proposed_by,
      old.proposed_token, old.reason, old.proposed_us)
begin
  select raise(abort, 'approvals are decided once (I3)');
end;
create trigger ibid_approval_is_never_deleted before delete on ibid_approval
begin
  select raise(abort, 'approvals are never deleted (I3)');
end;
