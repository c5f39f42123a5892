-- answer_insert: $1 tenant, $2 command id, $3 attempts, $4 body
insert into ibid.answer (tenant, command_id, attempts, body) values ($1, $2, $3, $4)
