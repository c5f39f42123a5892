-- One case of a complaint, its first move and the clock that runs from now on.
insert into enforcement_case (tenant, id, source_system, external_complaint_id, subject, supervisor_id, status, version,
                              created_at, updated_at)
values (:tenant, :command_id::text, :sourceSystem, :externalComplaintId, :subject, :supervisorId, 'OPEN', 1, :now, :now);

select ibid.move('case', :command_id::text, 'OPEN', null, 0);

insert into case_sla_timer (tenant, id, case_id, sla_type, status, started_at, due_on)
values (:tenant, :command_id::text, :command_id::text, 'FIRST_RESPONSE', 'ACTIVE', :now, (:now at time zone 'UTC')::date + 10);
