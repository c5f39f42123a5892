-- One case of a complaint, its first move, the clock that runs from now on, the event, the answer.
insert into enforcement_case (tenant, id, source_system, external_complaint_id, subject, supervisor_id, status, version,
                              created_at, updated_at)
values (:tenant, :command_id, :sourceSystem, :externalComplaintId, :subject, :supervisorId, 'OPEN', 1, :now, :now);

select ibid_move('case', :command_id, 'OPEN', null, 0);

insert into case_sla_timer (tenant, id, case_id, sla_type, status, started_at, due_on)
values (:tenant, :command_id, :command_id, 'FIRST_RESPONSE', 'ACTIVE', :now, date(:now, '+10 days'));

select ibid_emit('case', :command_id, 'CaseCreated',
                 json_object('sourceSystem', :sourceSystem, 'externalComplaintId', :externalComplaintId));

select 201 as status, json_object('caseId', :command_id, 'status', 'OPEN', 'version', 1) as body,
       'case' as resource_type, :command_id as resource_id;
