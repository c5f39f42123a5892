-- The timer that runs.
select 200 as status, json_object('timerId', id, 'caseId', case_id, 'slaType', sla_type, 'dueOn', due_on) as body,
       'sla-timer' as resource_type, id as resource_id
from case_sla_timer where tenant = :tenant and case_id = :caseId and sla_type = :slaType and status = 'ACTIVE';
