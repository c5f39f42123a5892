-- One case of a complaint, its first move and the clock that runs from now on.
insert into enforcement_case (tenant, id, source_system, external_complaint_id, subject, supervisor_id, status, version,
                              created_at, updated_at)
values (:tenant, :command_id, :sourceSystem, :externalComplaintId, :subject, :supervisorId, 'OPEN', 1, :now, :now);

select ibid_move('case', :command_id, 'OPEN', null, 0);

insert into case_sla_timer (tenant, id, case_id, sla_type, status, started_at, due_on)
values (:tenant, :command_id, :command_id, 'FIRST_RESPONSE', 'ACTIVE', :now, date(:now, '+10 days'));
