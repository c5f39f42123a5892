-- What is known of a case, fixed for a period. Closed cases are reported on, too.
select ibid.reject('CASE_NOT_FOUND', 404, 'there is no such case')
where not exists (select 1 from enforcement_case where tenant = :tenant and id = :caseId for update);

insert into case_report (tenant, id, case_id, report_type, period, content, generated_at)
select tenant, :command_id::text, id, :reportType, :period,
       jsonb_build_object(
         'status', status, 'version', version,
         'evidence', (select count(*) from case_evidence as e where e.tenant = c.tenant and e.case_id = c.id),
         'escalations', (select count(*) from case_escalation as e where e.tenant = c.tenant and e.case_id = c.id),
         'approvals', (select count(*) from case_approval as a where a.tenant = c.tenant and a.case_id = c.id)),
       :now
from enforcement_case as c where tenant = :tenant and id = :caseId;

select 201 as status, jsonb_build_object('reportId', id, 'caseId', case_id, 'content', content) as body,
       'report' as resource_type, id as resource_id
from case_report where tenant = :tenant and id = :command_id::text;
