-- One escalation of one version of a case, with the supervisor's review task and notice.
select ibid_reject('CASE_NOT_FOUND', 404, 'there is no such case')
where not exists (select 1 from enforcement_case where tenant = :tenant and id = :caseId);

select ibid_reject('CASE_CLOSED', 409, 'a closed case is not escalated: reopen it')
from enforcement_case where tenant = :tenant and id = :caseId and status = 'CLOSED';

-- An escalation is itself a move, so the version that an escalated case was escalated in is the one before.
select ibid_reject('CASE_CHANGED', 409, 'the case is at version ' || version)
from enforcement_case as c
where tenant = :tenant and id = :caseId
  and :caseVersion <> case status when 'ESCALATED' then version - 1 else version end
  and not exists (select 1 from case_escalation as e
                  where e.tenant = c.tenant and e.case_id = c.id and e.source_case_version = :caseVersion);

select ibid_reject('ESCALATED_OTHERWISE', 409, 'escalation ' || e.id || ' of this version has reason ' || e.reason_code)
from enforcement_case as c
join case_escalation as e on e.tenant = c.tenant and e.case_id = c.id
 and e.source_case_version = coalesce(:caseVersion, case c.status when 'ESCALATED' then c.version - 1 else c.version end)
where c.tenant = :tenant and c.id = :caseId and e.reason_code <> :reasonCode;

insert into case_escalation (tenant, id, case_id, source_case_version, reason_code, comment, escalated_by, escalated_at)
select tenant, :command_id, id,
       coalesce(:caseVersion, case status when 'ESCALATED' then version - 1 else version end),
       :reasonCode, :comment, :actor, :now
from enforcement_case where tenant = :tenant and id = :caseId;

with step as materialized (
  select ibid_move('case', :caseId, 'ESCALATED', json_object('reasonCode', :reasonCode)) as move)
update enforcement_case
set status = move ->> 'state', version = move ->> 'version', status_reason = :reasonCode, updated_at = :now
from step where tenant = :tenant and id = :caseId;

insert into review_task (tenant, id, case_id, source_case_version, task_type, assignee_id, status, created_at)
select tenant, :command_id, id, version - 1, 'SUPERVISOR_REVIEW', supervisor_id, 'OPEN', :now
from enforcement_case where tenant = :tenant and id = :caseId
on conflict do nothing;

insert into case_notice (tenant, id, case_id, source_case_version, notice_type, recipient, issued_at)
select tenant, :command_id, id, version - 1, 'ESCALATION', supervisor_id, :now
from enforcement_case where tenant = :tenant and id = :caseId
on conflict do nothing;

select ibid_emit('case', :caseId, 'CaseEscalated',
                 json_object('escalationId', id, 'caseVersion', source_case_version, 'reasonCode', reason_code))
from case_escalation where tenant = :tenant and id = :command_id;

select 202 as status,
       json_object('escalationId', id, 'caseId', case_id, 'caseVersion', source_case_version) as body,
       'escalation' as resource_type, id as resource_id
from case_escalation where tenant = :tenant and id = :command_id;
