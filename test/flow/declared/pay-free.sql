insert into payment (tenant, id, payer, payee, amount) values (:tenant, :command_id, :from, 'x', :amount);
