-- The same for both stores.
insert into payment (tenant, id, payer, payee, amount, reference)
values (:tenant, :command_id, :from, :to, :amount, :reference);
