-- One payment: the order and its two ledger entries. The contract says what it is answered and which event it tells.
insert into payment (tenant, id, payer, payee, amount, currency, note, created_at)
values (:tenant, :command_id, :from, :to, :amount, :currency, :note, :now);

insert into ledger_entry (tenant, payment_id, direction, account, amount, currency)
values (:tenant, :command_id, 'DEBIT', :from, :amount, :currency),
       (:tenant, :command_id, 'CREDIT', :to, :amount, :currency);
