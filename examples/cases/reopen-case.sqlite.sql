-- A closed case is worked on again, and the first clock runs anew.
select ibid_reject('CASE_NOT_FOUND', 404, 'there is no such case')
where not exists (select 1 from enforcement_case where tenant = :tenant and id = :caseId);

with step as materialized (
  select ibid_move('case', :caseId, 'REOPENED', json_object('reasonCode', :reasonCode)) as move)
update enforcement_case
set status = move ->> 'state', version = move ->> 'version', status_reason = :reasonCode, updated_at = :now
from step where tenant = :tenant and id = :caseId;

insert into case_sla_timer (tenant, id, case_id, sla_type, status, started_at, due_on)
values (:tenant, :command_id, :caseId, 'FIRST_RESPONSE', 'ACTIVE', :now, date(:now, '+10 days'));

select 200 as status, json_object('caseId', id, 'status', status, 'version', version) as body,
       'case' as resource_type, id as resource_id
from enforcement_case where tenant = :tenant and id = :caseId;
