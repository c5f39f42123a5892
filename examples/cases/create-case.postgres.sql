-- One case of a complaint, its first move, the clock that runs from now on, the event, the answer.
insert into enforcement_case (tenant, id, source_system, external_complaint_id, subject, supervisor_id, status, version,
                              created_at, updated_at)
values (:tenant, :command_id::text, :sourceSystem, :externalComplaintId, :subject, :supervisorId, 'OPEN', 1, :now, :now);

select ibid.move('case', :command_id::text, 'OPEN', null, 0);

insert into case_sla_timer (tenant, id, case_id, sla_type, status, started_at, due_on)
values (:tenant, :command_id::text, :command_id::text, 'FIRST_RESPONSE', 'ACTIVE', :now, (:now at time zone 'UTC')::date + 10);

select ibid.emit('case', :command_id::text, 'CaseCreated',
                 jsonb_build_object('sourceSystem', :sourceSystem, 'externalComplaintId', :externalComplaintId));

select 201 as status, jsonb_build_object('caseId', :command_id, 'status', 'OPEN', 'version', 1) as body,
       'case' as resource_type, :command_id as resource_id;
