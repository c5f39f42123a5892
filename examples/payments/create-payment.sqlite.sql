-- One payment: the order, its two ledger entries, the event, the answer.
select ibid_reject('SAME_ACCOUNT', 422, 'from and to must differ') where :from = :to;

insert into payment (tenant, id, payer, payee, amount, currency, note, created_at)
values (:tenant, :command_id, :from, :to, :amount, :currency, :note, :now);

insert into ledger_entry (tenant, payment_id, direction, account, amount, currency)
values (:tenant, :command_id, 'DEBIT', :from, :amount, :currency),
       (:tenant, :command_id, 'CREDIT', :to, :amount, :currency);

select ibid_emit('payment', :command_id, 'PaymentCreated',
                 json_object('from', :from, 'to', :to, 'amount', json(:amount), 'currency', :currency));

select 201 as status, json_object('id', :command_id) as body,
       'payment' as resource_type, :command_id as resource_id;
