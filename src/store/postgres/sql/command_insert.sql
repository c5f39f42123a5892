-- command_insert: $1 tenant, $2 operation, $3 scope, $4 key, $5 id, $6 state, $7 scheme,
--   $8 contract version, $9 fingerprint, $10 linked, $11 status, $12 resource type, $13 resource id,
--   $14 reason, $15 text, $16 audit id, $17 attempts, $18 client, $19 actor, $20 created,
--   $21 finished, $22 expires
-- The row is written once, complete; command_pkey arbitrates (I2).
insert into ibid.command (tenant, operation, scope, key, id, state, scheme, contract_version,
	fingerprint, linked, status, resource_type, resource_id, reason, text, audit_id, attempts, client,
	actor, created_at, finished_at, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
	$21, $22)
