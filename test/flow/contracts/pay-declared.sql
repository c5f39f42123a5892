insert into payment (tenant, id, reference, amount) values (:tenant, :command_id, :reference, :amount);
