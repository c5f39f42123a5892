-- adopt_begin: $1 tenant, $2 operation, $3 key, $4 payload, $5 client, $6 actor, $7 resource,
--   $8 correlation id, $9 causation id, $10 contract version, $11 traceparent, $12 tracestate
-- One row: what command_begin says; times in microseconds.
select
	b.decision, b.command_id, b.status, b.body, b.outcome, b.reason, b.message, b.resource_type,
	b.resource_id, (extract(epoch from b.first_at) * 1000000)::bigint,
	(extract(epoch from b.expires_at) * 1000000)::bigint, b.correctable
from ibid.command_begin(tenant => $1, operation => $2, key => $3, payload => $4, client => $5, actor => $6,
	resource => $7, correlation_id => $8, causation_id => $9, contract_version => $10,
	traceparent => $11, tracestate => $12) as b
