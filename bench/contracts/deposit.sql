update account set balance = balance + :amount where tenant = :tenant and id = :account;
