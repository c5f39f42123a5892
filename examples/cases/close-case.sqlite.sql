-- A case is closed and its clocks stand still. A case that is before its supervisor can't be closed.
select ibid_reject('CASE_NOT_FOUND', 404, 'there is no such case')
where not exists (select 1 from enforcement_case where tenant = :tenant and id = :caseId);

with step as materialized (
  select ibid_move('case', :caseId, 'CLOSED', json_object('reasonCode', :reasonCode)) as move)
update enforcement_case
set status = move ->> 'state', version = move ->> 'version', status_reason = :reasonCode, updated_at = :now
from step where tenant = :tenant and id = :caseId;

update case_sla_timer set status = 'STOPPED', stopped_at = :now
where tenant = :tenant and case_id = :caseId and status = 'ACTIVE';

select 200 as status, json_object('caseId', id, 'status', status, 'version', version) as body,
       'case' as resource_type, id as resource_id
from enforcement_case where tenant = :tenant and id = :caseId;
