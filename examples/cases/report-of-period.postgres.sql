-- The report that was made.
select 200 as status, jsonb_build_object('reportId', id, 'caseId', case_id, 'content', content) as body,
       'report' as resource_type, id as resource_id
from case_report where tenant = :tenant and case_id = :caseId and report_type = :reportType and period = :period;
