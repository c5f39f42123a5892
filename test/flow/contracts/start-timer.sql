insert into timer (tenant, id, case_id, state) values (:tenant, :command_id, :case_id, 'ACTIVE');
select 201 as status, null as body, 'timer' as resource_type, :command_id as resource_id;
