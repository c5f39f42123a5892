-- postgres_fill: $1 first, $2 last, $3 of how many
-- Completed payments, spread evenly over the 29 days that have passed, each with its command, its event,
-- the head of its aggregate and its audit entry. Keys are random; whatever a key does not change (scope,
-- fingerprint, version, ...) is that of a payment which was submitted. Commands go in by key, so that a batch
-- walks through the index once.
with model as materialized (
	select * from ibid.command where tenant = 'acme' and operation = 'pay' limit 1
), moment as materialized (
	select clock_timestamp() - interval '29 days' * (1 - n::float8 / $3::float8) as at
	from generate_series($1::bigint, $2::bigint) as n
), batch as materialized (
	select at, gen_random_uuid()::text as key,
		overlay(overlay(gen_random_uuid()::text placing overlay(lpad(to_hex((extract(epoch from at)
			* 1000)::bigint), 12, '0') placing '-' from 9 for 0) from 1) placing '7' from 15)::uuid as id
	from moment
), commands as (
	insert into ibid.command (tenant, operation, scope, key, id, state, scheme, contract_version, fingerprint,
		linked, status, resource_type, resource_id, audit_id, attempts, client, actor, created_at, finished_at,
		expires_at)
	select model.tenant, model.operation, model.scope, batch.key, batch.id, model.state, model.scheme,
		model.contract_version, model.fingerprint, model.linked, model.status, model.resource_type,
		batch.id::text, batch.id, 1, model.client, model.actor, batch.at, batch.at,
		batch.at + interval '30 days'
	from batch, model
	order by batch.key
), heads as (
	insert into ibid.aggregate (tenant, type, id, version)
	select model.tenant, 'payment', batch.id::text, 1 from batch, model
), events as (
	insert into ibid.event (tenant, id, command_id, ordinal, aggregatetype, aggregateid, type, payload,
		version, key, partition_key, created_at)
	select model.tenant, overlay(batch.id::text placing '0001' from 33)::uuid, batch.id, 1, 'payment',
		batch.id::text, 'PaymentCreated', '{"amount": 12.5, "currency": "EUR"}', 1, batch.id || ':1',
		batch.id::text, batch.at
	from batch, model
)
insert into ibid.audit (tenant, id, command_id, operation, contract_version, fact, outcome, client, actor,
	resource_type, resource_id, fingerprint, at)
select model.tenant, batch.id, batch.id, model.operation, model.contract_version, 'a payment is accepted',
	'executed', model.client, model.actor, model.resource_type, batch.id::text, model.fingerprint, batch.at
from batch, model
