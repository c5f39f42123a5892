	e.id, e.command_id, e.tenant, e.aggregatetype, e.aggregateid, e.type, e.payload, e.version, e.key, e.ordinal,
	e.correlation_id, e.causation_id, e.traceparent, e.tracestate, e.topic, e.partition_key,
	coalesce(e.headers, '{}') as headers,
	ibid_internal.microseconds(e.created_at) as created_at -- sqlite: e.created_us
