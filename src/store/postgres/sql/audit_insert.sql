-- audit_insert: $1 tenant, $2 id, $3 command id, $4 operation, $5 contract version, $6 fact,
--   $7 outcome, $8 client, $9 actor, $10 resource type, $11 resource id, $12 correlation id,
--   $13 causation id, $14 fingerprint, $15 at
insert into ibid.audit (tenant, id, command_id, operation, contract_version, fact, outcome, client,
	actor, resource_type, resource_id, correlation_id, causation_id, fingerprint, at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
