-- One approval of one action.
select ibid.reject('CASE_NOT_FOUND', 404, 'there is no such case')
where not exists (select 1 from enforcement_case where tenant = :tenant and id = :caseId for update);

select ibid.reject('APPROVED_OTHERWISE', 409, 'action ' || action_id || ' is approved as ' || action_type)
from case_approval
where tenant = :tenant and case_id = :caseId and action_id = :actionId and action_type <> :actionType;

insert into case_approval (tenant, id, case_id, action_id, action_type, approved_by, approved_at)
values (:tenant, :command_id::text, :caseId, :actionId, :actionType, :actor, :now);

select ibid.reject('CASE_CLOSED', 409, 'nothing is approved in a closed case: reopen it')
from enforcement_case where tenant = :tenant and id = :caseId and status = 'CLOSED';

with step as materialized (
  select ibid.move('case', :caseId, 'APPROVED', jsonb_build_object('actionId', :actionId)) as move)
update enforcement_case
set status = move ->> 'state', version = (move ->> 'version')::bigint, updated_at = :now
from step where tenant = :tenant and id = :caseId;
