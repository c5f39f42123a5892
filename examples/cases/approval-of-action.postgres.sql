-- The approval that the action has.
select 200 as status, jsonb_build_object('approvalId', id, 'caseId', case_id, 'actionId', action_id) as body,
       'approval' as resource_type, id as resource_id
from case_approval where tenant = :tenant and case_id = :caseId and action_id = :actionId;
