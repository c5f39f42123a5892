-- group_write: arrays, an element for each member: $1 tenants, $2 operations, $3 scopes, $4 keys, $5 ids,
--   $6 schemes, $7 contract versions, $8 fingerprints, $9 statuses, $10 resource types and $11 ids as
--   the row keeps them, $12 clients, $13 actors, $14 times, $15 expiries, $16 facts, $17 resource types
--   and $18 ids of the answer, $19 correlation ids, $20 causation ids, $21 traceparents,
--   $22 tracestates
-- The rows and the audit entries of commands that were executed: command_insert and audit_insert for
-- many. command_pkey arbitrates (I2).
with each as (
	select unnest($1::text[]) as tenant, unnest($2::text[]) as operation, unnest($3::text[]) as scope,
		unnest($4::text[]) as key, unnest($5::uuid[]) as id, unnest($6::int[]) as scheme,
		unnest($7::int[]) as contract_version, unnest($8::bytea[]) as fingerprint, unnest($9::int[]) as status,
		unnest($10::text[]) as kept_type, unnest($11::text[]) as kept_id, unnest($12::text[]) as client,
		unnest($13::text[]) as actor, unnest($14::timestamptz[]) as at, unnest($15::timestamptz[]) as expires_at,
		unnest($16::text[]) as fact, unnest($17::text[]) as resource_type, unnest($18::text[]) as resource_id,
		unnest($19::text[]) as correlation_id, unnest($20::text[]) as causation_id, unnest($21::text[]) as traceparent,
		unnest($22::text[]) as tracestate
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
