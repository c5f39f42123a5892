-- exception_get: ?1 tenant, ?2 id
select
  e.tenant, e.id, e.queue, e.state, e.severity, e.subject_type, e.subject_id, e.business_key, e.source,
  e.payload_ref, e.reason, e.detail, e.suggestion, e.owner, e.retryable, e.actions, e.correlation_id,
  e.document_type, e.document_id, e.opened_us, e.due_us, e.resolved_us, e.resolution, e.resolved_by,
  e.note, e.trace_id, e.needs_approval, e.assignee, e.service_answer
from ibid_exception e
where e.tenant = ?1 and e.id = ?2
