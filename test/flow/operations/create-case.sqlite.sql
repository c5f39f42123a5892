insert into kase (tenant, id, source, number) values (:tenant, :command_id, :source, :number);
select ibid_emit('case', :command_id, 'CaseCreated', json_object('number', :number));
select 201 as status, 'case' as resource_type, :command_id as resource_id;
