insert into payment (tenant, id, payer, payee, amount, currency) values (:tenant, :command_id, :from, :to, :amount, :currency);
