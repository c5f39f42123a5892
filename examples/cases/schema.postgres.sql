-- The business tables of case management. Every row that a command makes has the command's id. The tenant
-- comes first in every key; the unique indexes that contracts name are the last guard against the same
-- fact under a new key.

-- The allowed moves. A case's version is the number of moves that it has made.
select ibid.define_machine('case', '[["", "OPEN"],
  ["OPEN", "ASSIGNED"], ["OPEN", "ESCALATED"], ["OPEN", "CLOSED"],
  ["ASSIGNED", "ASSIGNED"], ["ASSIGNED", "ESCALATED"], ["ASSIGNED", "APPROVED"], ["ASSIGNED", "CLOSED"],
  ["ESCALATED", "ASSIGNED"], ["ESCALATED", "APPROVED"],
  ["APPROVED", "APPROVED"], ["APPROVED", "ASSIGNED"], ["APPROVED", "ESCALATED"], ["APPROVED", "CLOSED"],
  ["CLOSED", "REOPENED"],
  ["REOPENED", "ASSIGNED"], ["REOPENED", "ESCALATED"], ["REOPENED", "CLOSED"]]');

create table enforcement_case (
  tenant                 text not null,
  id                     text not null,
  source_system          text not null,
  external_complaint_id  text not null,
  subject                text not null,
  supervisor_id          text not null,
  officer_id             text,
  status                 text not null,      -- as the machine has it, for those who look for cases
  status_reason          text,               -- of the last escalation, closing or reopening
  version                bigint not null,    -- as the machine has it
  created_at             timestamptz not null,
  updated_at             timestamptz not null,
  primary key (tenant, id)
);
create unique index enforcement_case_complaint on enforcement_case (tenant, source_system, external_complaint_id);

create table case_sla_timer (
  tenant      text not null,
  id          text not null,
  case_id     text not null,
  sla_type    text not null,
  status      text not null check (status in ('ACTIVE', 'STOPPED', 'BREACHED')),
  started_at  timestamptz not null,
  due_on      date not null,
  stopped_at  timestamptz,
  primary key (tenant, id),
  foreign key (tenant, case_id) references enforcement_case (tenant, id)
);
create unique index case_sla_timer_active on case_sla_timer (tenant, case_id, sla_type) where status = 'ACTIVE';

create table case_assignment (
  tenant        text not null,
  id            text not null,
  case_id       text not null,
  case_version  bigint not null,
  officer_id    text not null,
  assigned_by   text,
  assigned_at   timestamptz not null,
  primary key (tenant, id),
  foreign key (tenant, case_id) references enforcement_case (tenant, id)
);
create unique index case_assignment_version on case_assignment (tenant, case_id, case_version);

create table case_escalation (
  tenant               text not null,
  id                   text not null,
  case_id              text not null,
  source_case_version  bigint not null,
  reason_code          text not null,
  comment              text,
  escalated_by         text,
  escalated_at         timestamptz not null,
  primary key (tenant, id),
  foreign key (tenant, case_id) references enforcement_case (tenant, id)
);
create unique index case_escalation_version on case_escalation (tenant, case_id, source_case_version);

create table review_task (
  tenant               text not null,
  id                   text not null,
  case_id              text not null,
  source_case_version  bigint not null,
  task_type            text not null,
  assignee_id          text not null,
  status               text not null check (status in ('OPEN', 'DONE')),
  created_at           timestamptz not null,
  primary key (tenant, id),
  foreign key (tenant, case_id) references enforcement_case (tenant, id)
);
create unique index review_task_supervisor on review_task (tenant, case_id, source_case_version)
  where task_type = 'SUPERVISOR_REVIEW';

create table case_notice (
  tenant               text not null,
  id                   text not null,
  case_id              text not null,
  source_case_version  bigint not null,
  notice_type          text not null,
  recipient            text not null,
  issued_at            timestamptz not null,
  primary key (tenant, id),
  foreign key (tenant, case_id) references enforcement_case (tenant, id)
);
create unique index case_notice_business_key
  on case_notice (tenant, case_id, source_case_version, notice_type, recipient);

create table case_evidence (
  tenant        text not null,
  id            text not null,
  case_id       text not null,
  sha256        text not null,
  file_name     text not null,
  kind          text not null,
  submitted_by  text,
  submitted_at  timestamptz not null,
  primary key (tenant, id),
  foreign key (tenant, case_id) references enforcement_case (tenant, id)
);
create unique index case_evidence_content on case_evidence (tenant, case_id, sha256);

create table case_approval (
  tenant       text not null,
  id           text not null,
  case_id      text not null,
  action_id    text not null,
  action_type  text not null,
  approved_by  text,
  approved_at  timestamptz not null,
  primary key (tenant, id),
  foreign key (tenant, case_id) references enforcement_case (tenant, id)
);
create unique index case_approval_action on case_approval (tenant, case_id, action_id);

create table case_report (
  tenant        text not null,
  id            text not null,
  case_id       text not null,
  report_type   text not null,
  period        text not null,
  content       jsonb not null,
  generated_at  timestamptz not null,
  primary key (tenant, id),
  foreign key (tenant, case_id) references enforcement_case (tenant, id)
);
create unique index case_report_period on case_report (tenant, case_id, report_type, period);

-- Programs with libibid connect as members of ibid_service, callers of the SQL functions as members of ibid_app;
-- ibid init creates both where it may.
do $$ declare role text; begin
  foreach role in array array['ibid_service', 'ibid_app'] loop
    if to_regrole(role) is not null then
      execute format('grant select, insert on enforcement_case, case_sla_timer, case_assignment, case_escalation, review_task,
                      case_notice, case_evidence, case_approval, case_report to %I', role);
      execute format('grant update on enforcement_case, case_sla_timer to %I', role);
    end if;
  end loop;
end $$;
