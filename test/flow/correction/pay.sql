insert into payment (tenant, id, amount) values (:tenant, :command_id, :amount);
select 201 as status, 'payment' as resource_type, :command_id as resource_id;
