-- One running timer of a type. The day it is due follows from the command's time, not from the clock.
select ibid_reject('CASE_NOT_FOUND', 404, 'there is no such case')
where not exists (select 1 from enforcement_case where tenant = :tenant and id = :caseId);

select ibid_reject('CASE_CLOSED', 409, 'no timer runs for a closed case: reopen it')
from enforcement_case where tenant = :tenant and id = :caseId and status = 'CLOSED';

insert into case_sla_timer (tenant, id, case_id, sla_type, status, started_at, due_on)
values (:tenant, :command_id, :caseId, :slaType, 'ACTIVE', :now, date(:now, '+' || :days || ' days'));

select ibid_emit('case', :caseId, 'SlaTimerStarted',
                 json_object('timerId', id, 'slaType', sla_type, 'dueOn', due_on))
from case_sla_timer where tenant = :tenant and id = :command_id;

select 201 as status, json_object('timerId', id, 'caseId', case_id, 'slaType', sla_type, 'dueOn', due_on) as body,
       'sla-timer' as resource_type, id as resource_id
from case_sla_timer where tenant = :tenant and id = :command_id;
