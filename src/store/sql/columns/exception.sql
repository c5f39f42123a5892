	e.tenant, e.id, e.queue, e.state, e.severity, e.subject_type, e.subject_id, e.business_key, e.source, e.payload_ref,
	e.reason, e.detail, e.suggestion, e.owner, e.retryable, e.actions, e.correlation_id, e.document_type, e.document_id,
	instant(e.opened_at), instant(e.due_at), instant(e.resolved_at), e.resolution, e.resolved_by, e.note, e.trace_id,
	e.needs_approval, e.assignee
