-- Is the case closed, for whatever reason?
select 200 as status, 'case' as resource_type, id as resource_id
from enforcement_case where tenant = :tenant and id = :caseId and status = 'CLOSED';
