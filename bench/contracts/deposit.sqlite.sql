update account set balance = balance + :amount where tenant = :tenant and id = :account;
select 200 as status, 'account' as resource_type, :account as resource_id;
