-- action_insert: $1 tenant, $2 id, $3 at, $4 actor, $5 token, $6 role, $7 action, $8 subject type,
--   $9 subject id, $10 reason, $11 parameters, $12 approval id
insert into ibid.action (tenant, id, at, actor, token, role, action, subject_type, subject_id, reason, parameters,
	approval_id)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
