insert into raised (tenant, account) select :tenant, id from account where tenant = :tenant and id = :account;
update account set n = n + 1 where tenant = :tenant and id = :account;
