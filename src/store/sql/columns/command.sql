	c.tenant, c.operation, c.scope, c.key, c.id, c.state, c.scheme, c.contract_version, digest(c.fingerprint), c.linked,
	c.status, c.resource_type, c.resource_id, c.reason, c.text, c.audit_id, c.attempts, c.client, c.actor,
	instant(c.created_at), instant(c.finished_at), instant(c.expires_at), c.lease_token, instant(c.lease_until),
	c.state = 'IN_PROGRESS' and coalesce(c.lease_until < clock_timestamp(), false) as stale,
	c.correlation_id, c.causation_id, c.traceparent, c.tracestate
