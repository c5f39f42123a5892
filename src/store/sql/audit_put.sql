-- audit_put
-- The entry of an accepted intent has the id of its command: there can't be two.
insert into ibid.audit (
	id, command_id, tenant, operation, fact, outcome, contract_version, client, actor, resource_type, resource_id,
	correlation_id, causation_id, traceparent, tracestate, fingerprint, at)
values (
	:command_id, :command_id, :tenant, :operation, :fact, :outcome, :contract_version, :client, :actor, :resource_type,
	:resource_id, :correlation_id, :causation_id, :traceparent, :tracestate, :fingerprint, :at)
