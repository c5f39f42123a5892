-- The officer of a case: a move, so that the next version may be escalated again.
select ibid.reject('CASE_NOT_FOUND', 404, 'there is no such case')
where not exists (select 1 from enforcement_case where tenant = :tenant and id = :caseId for update);

select ibid.reject('CASE_CLOSED', 409, 'a closed case is not assigned: reopen it')
from enforcement_case where tenant = :tenant and id = :caseId and status = 'CLOSED';

with step as materialized (
  select ibid.move('case', :caseId, 'ASSIGNED', jsonb_build_object('officerId', :officerId)) as move)
update enforcement_case
set status = move ->> 'state', version = (move ->> 'version')::bigint, officer_id = :officerId, updated_at = :now
from step where tenant = :tenant and id = :caseId;

insert into case_assignment (tenant, id, case_id, case_version, officer_id, assigned_by, assigned_at)
select tenant, :command_id::text, id, version, :officerId, :actor, :now
from enforcement_case where tenant = :tenant and id = :caseId;

select 201 as status,
       jsonb_build_object('assignmentId', :command_id, 'caseId', id, 'officerId', officer_id, 'version', version) as body,
       'assignment' as resource_type, :command_id as resource_id
from enforcement_case where tenant = :tenant and id = :caseId;
