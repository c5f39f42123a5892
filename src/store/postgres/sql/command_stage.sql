-- command_stage: $1 to $22 as in command_insert, $23 lease token or null, $24 lease in microseconds or null,
--   $25 correlation id, $26 causation id, $27 traceparent, $28 tracestate
-- A command IN_PROGRESS that others may see: its lease ends by the server's clock, or never. Or an outcome
-- without an audit entry, which keeps itself where it came from.
insert into ibid.command (tenant, operation, scope, key, id, state, scheme, contract_version,
	fingerprint, linked, status, resource_type, resource_id, reason, text, audit_id, attempts, client,
	actor, created_at, finished_at, expires_at, lease_token, lease_until, correlation_id, causation_id,
	traceparent, tracestate)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
	$21, $22, $23, clock_timestamp() + $24::bigint * interval '1 microsecond', $25, $26, $27, $28)
