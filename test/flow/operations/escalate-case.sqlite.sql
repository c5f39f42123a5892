insert into escalation (tenant, id, case_id, case_version) values (:tenant, :command_id, :case, :case_version);
select ibid_emit('case', :case, 'CaseEscalated', json_object('caseVersion', :case_version));
select 201 as status, 'escalation' as resource_type, :command_id as resource_id;
