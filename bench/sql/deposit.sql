-- deposit: $1 amount, $2 tenant, $3 account
update account set balance = balance + $1 where tenant = $2 and id = $3
