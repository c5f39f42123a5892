-- Is the case assigned to this officer?
select 200 as status,
       jsonb_build_object('assignmentId', a.id, 'caseId', c.id, 'officerId', c.officer_id, 'version', c.version) as body,
       'assignment' as resource_type, a.id as resource_id
from enforcement_case as c
join case_assignment as a on a.tenant = c.tenant and a.case_id = c.id and a.case_version = c.version
where c.tenant = :tenant and c.id = :caseId and c.status = 'ASSIGNED' and c.officer_id = :officerId;
