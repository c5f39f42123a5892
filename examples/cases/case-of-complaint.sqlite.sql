-- The case that the complaint has already.
select 200 as status, json_object('caseId', id, 'status', status, 'version', version) as body,
       'case' as resource_type, id as resource_id
from enforcement_case
where tenant = :tenant and source_system = :sourceSystem and external_complaint_id = :externalComplaintId;
