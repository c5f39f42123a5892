insert into payment (tenant, reference, instruction, payer, amount) values (:tenant, :command_id, :instruction, :payer, :amount);
select 201 as status, 'bank-execution' as resource_type, :command_id as resource_id;
