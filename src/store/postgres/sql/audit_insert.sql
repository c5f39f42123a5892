-- audit_insert: $1 tenant, $2 command id, $3 operation, $4 contract version, $5 fact, $6 outcome,
--   $7 client, $8 actor, $9 resource type, $10 resource id, $11 correlation id, $12 causation id,
--   $13 traceparent, $14 tracestate, $15 fingerprint, $16 at
-- The entry of an accepted intent has the id of its command: there can't be two.
insert into ibid.audit (tenant, id, command_id, operation, contract_version, fact, outcome, client,
	actor, resource_type, resource_id, correlation_id, causation_id, traceparent, tracestate,
	fingerprint, at)
values ($1, $2, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
