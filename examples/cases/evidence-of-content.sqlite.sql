-- The evidence that has this content.
select 200 as status, json_object('evidenceId', id, 'caseId', case_id, 'sha256', sha256) as body,
       'evidence' as resource_type, id as resource_id
from case_evidence where tenant = :tenant and case_id = :caseId and sha256 = :sha256;
