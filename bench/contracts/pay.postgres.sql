insert into payment (tenant, id, payer, payee, amount, currency) values (:tenant, :command_id, :from, :to, :amount, :currency);
select ibid.emit('payment', :command_id::text, 'PaymentCreated', jsonb_build_object('amount', :amount, 'currency', :currency));
select 201 as status, 'payment' as resource_type, :command_id as resource_id;
