-- command_stage: $1 to $22 as in command_insert, $23 lease token, $24 lease in microseconds or null
-- A command IN_PROGRESS that others may see: its lease ends by the server's clock, or never.
insert into ibid.command (tenant, operation, scope, key, id, state, scheme, contract_version,
	fingerprint, linked, status, resource_type, resource_id, reason, text, audit_id, attempts, client,
	actor, created_at, finished_at, expires_at, lease_token, lease_until)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
	$21, $22, $23, clock_timestamp() + $24::bigint * interval '1 microsecond')
