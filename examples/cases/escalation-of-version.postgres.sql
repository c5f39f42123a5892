-- The escalation of the version that was meant: the given one, or the latest that was escalated.
select 200 as status,
       jsonb_build_object('escalationId', id, 'caseId', case_id, 'caseVersion', source_case_version) as body,
       'escalation' as resource_type, id as resource_id
from case_escalation
where tenant = :tenant and case_id = :caseId and source_case_version = coalesce(:caseVersion, source_case_version)
order by source_case_version desc
limit 1;
