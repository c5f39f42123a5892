	a.id, a.command_id, a.tenant, a.operation, a.fact, a.outcome, a.contract_version, a.client, a.actor, a.resource_type,
	a.resource_id, a.correlation_id, a.causation_id, a.traceparent, a.tracestate, digest(a.fingerprint), instant(a.at)
