-- 002_action: actions of people, and proposals that wait for a second person.

-- Evidence of one action: the person, the token, the role, the subject and the reason. It commits with the action.
create table ibid.action (
	tenant text collate "C",
	id uuid,
	at timestamptz not null,
	actor text not null, -- the token's client
	token text not null, -- its id
	role text not null, -- the one that allowed it
	action text not null,
	subject_type text collate "C" not null,
	subject_id text collate "C" not null,
	reason text not null,
	parameters text, -- JSON; of an answer only its digest
	approval_id uuid, -- where a second person was asked
	primary key (tenant, id),
	constraint action_reason_check check (reason <> '')
);
-- Its collation keeps it from being taken for the primary key: see 001_baseline.
create index action_subject on ibid.action (tenant collate "POSIX", subject_type, subject_id, id);
comment on table ibid.action is 'what people did, one row per action: never edited (I3)';
create trigger action_is_never_edited before update or delete on ibid.action
	for each row execute function ibid.refuse_edit();
create trigger action_is_never_emptied before truncate on ibid.action
	for each statement execute function ibid.refuse_edit();

-- What one person proposes and another decides. One waits per subject.
create table ibid.approval (
	tenant text collate "C",
	id uuid,
	subject_type text collate "C" not null,
	subject_id text collate "C" not null,
	action text not null,
	parameters text, -- JSON; once it is decided, of an answer only its digest
	proposed_by text not null, -- the token's client
	proposed_token text not null, -- its id
	reason text not null,
	proposed_at timestamptz not null,
	decision text collate "C", -- null: it waits
	decided_by text,
	decided_token text, -- null: it lapsed
	decided_reason text,
	decided_at timestamptz,
	primary key (tenant, id),
	constraint approval_decision_check check (decision in ('APPROVED', 'DECLINED', 'LAPSED')),
	constraint approval_decided_check check
		((decision is null) = (decided_at is null) and (decision is null) = (decided_by is null)),
	constraint approval_second_check check (decision <> 'APPROVED' or decided_by <> proposed_by)
);
create unique index approval_waiting_key
	on ibid.approval (tenant collate "POSIX", subject_type, subject_id) where decided_at is null;
create index approval_subject on ibid.approval (tenant collate "POSIX", subject_type, subject_id, id);
comment on table ibid.approval is
	'what one person proposed and another decides: what was proposed is never edited, and decided once (I3)';

create function ibid_internal.decide_once() returns trigger language plpgsql as $$
begin
	if tg_op = 'UPDATE' then
		if old.decided_at is null and new.decided_at is not null
			and (new.tenant, new.id, new.subject_type, new.subject_id, new.action, new.proposed_by,
				new.proposed_token, new.reason, new.proposed_at)
			= (old.tenant, old.id, old.subject_type, old.subject_id, old.action, old.proposed_by,
				old.proposed_token, old.reason, old.proposed_at) then
			return new;
		end if;
	end if;
	raise exception 'rows of %.% are decided once, and never edited or deleted', tg_table_schema, tg_table_name
		using errcode = 'IB007';
end $$;
comment on function ibid_internal.decide_once() is 'keeps what was proposed as it was, and what was decided';
create trigger approval_is_decided_once before update or delete on ibid.approval
	for each row execute function ibid_internal.decide_once();
create trigger approval_is_never_emptied before truncate on ibid.approval
	for each statement execute function ibid_internal.decide_once();
