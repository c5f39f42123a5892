-- A closed case is worked on again, and the first clock runs anew.
select ibid.reject('CASE_NOT_FOUND', 404, 'there is no such case')
where not exists (select 1 from enforcement_case where tenant = :tenant and id = :caseId for update);

with step as materialized (
  select ibid.move('case', :caseId, 'REOPENED', jsonb_build_object('reasonCode', :reasonCode)) as move)
update enforcement_case
set status = move ->> 'state', version = (move ->> 'version')::bigint, status_reason = :reasonCode, updated_at = :now
from step where tenant = :tenant and id = :caseId;

insert into case_sla_timer (tenant, id, case_id, sla_type, status, started_at, due_on)
values (:tenant, :command_id::text, :caseId, 'FIRST_RESPONSE', 'ACTIVE', :now, (:now at time zone 'UTC')::date + 10);

select 200 as status, jsonb_build_object('caseId', id, 'status', status, 'version', version) as body,
       'case' as resource_type, id as resource_id
from enforcement_case where tenant = :tenant and id = :caseId;
