-- group_write: arrays, an element for each member: $1 tenants, $2 operations, $3 scopes, $4 keys, $5 ids,
--   $6 schemes, $7 contract versions, $8 fingerprints, $9 statuses, $10 resource types and $11 ids as
--   the row keeps them, $12 clients, $13 actors, $14 times, $15 expiries, $16 facts, $17 resource types
--   and $18 ids of the answer, $19 correlation ids, $20 causation ids, $21 traceparents,
--   $22 tracestates
-- The rows and the audit entries of commands that were executed: command_insert and audit_insert for
-- many. command_pkey arbitrates (I2).
with each as (
	select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::int[], $7::int[],
		$8::bytea[], $9::int[], $10::text[], $11::text[], $12::text[], $13::text[], $14::timestamptz[],
		$15::timestamptz[], $16::text[], $17::text[], $18::text[], $19::text[], $20::text[],
		$21::text[], $22::text[])
	as each(tenant, operation, scope, key, id, scheme, contract_version, fingerprint, status, kept_type,
		kept_id, client, actor, at, expires_at, fact, resource_type, resource_id, correlation_id,
		causation_id, traceparent, tracestate)
), commands as (
	insert into ibid.command (tenant, operation, scope, key, id, state, scheme, contract_version,
		fingerprint, linked, status, resource_type, resource_id, audit_id, attempts, client, actor,
		created_at, finished_at, expires_at)
	select tenant, operation, scope, key, id, 'COMPLETED', scheme, contract_version, fingerprint, false,
		status, kept_type, kept_id, id, 1, client, actor, at, at, expires_at
	from each
)
insert into ibid.audit (tenant, id, command_id, operation, contract_version, fact, outcome, client,
	actor, resource_type, resource_id, correlation_id, causation_id, traceparent, tracestate,
	fingerprint, at)
select tenant, id, id, operation, contract_version, fact, 'executed', client, actor, resource_type,
	resource_id, correlation_id, causation_id, traceparent, tracestate,
	fingerprint, at
from each
