insert into payment (tenant, id, payer, payee, amount, currency) values (:tenant, :command_id, :from, :to, :amount, :currency);
select ibid_emit('payment', :command_id, 'PaymentCreated', json_object('amount', json(:amount), 'currency', :currency));
select 201 as status, 'payment' as resource_type, :command_id as resource_id;
