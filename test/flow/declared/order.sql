insert into raised (tenant, account) values (:tenant, :id);
