-- Is the case reopened, and for this reason?
select 200 as status, json_object('caseId', id, 'status', status, 'version', version) as body,
       'case' as resource_type, id as resource_id
from enforcement_case where tenant = :tenant and id = :caseId
  and status = 'REOPENED' and status_reason = :reasonCode;
