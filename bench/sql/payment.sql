-- payment: $1 tenant, $2 id, $3 payer, $4 payee, $5 amount, $6 currency
insert into payment (tenant, id, payer, payee, amount, currency) values ($1, $2, $3, $4, $5, $6)
