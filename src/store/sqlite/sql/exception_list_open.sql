-- exception_list_open: ?1 tenant, ?2 queue, ?3 state, ?4 owner, ?5 subject_type, ?6 subject_id,
-- ?7 older than this id, ?9 assignee (null: all of them); ?8 at most
-- The newest of those that are open, which are few: their index is read as a whole.
select
  e.tenant, e.id, e.queue, e.state, e.severity, e.subject_type, e.subject_id, e.business_key, e.source,
  e.payload_ref, e.reason, e.detail, e.suggestion, e.owner, e.retryable, e.actions, e.correlation_id,
  e.document_type, e.document_id, e.opened_us, e.due_us, e.resolved_us, e.resolution, e.resolved_by,
  e.note, e.trace_id, e.needs_approval, e.assignee, null
from ibid_exception e indexed by ibid_exception_open
where e.state = 'OPEN' and e.state = ?3
  and (?1 is null or e.tenant = ?1)
  and (?2 is null or e.queue = ?2)
  and (?4 is null or e.owner = ?4)
  and (?5 is null or e.subject_type = ?5)
  and (?6 is null or e.subject_id = ?6)
  and (?9 is null or e.assignee = ?9)
  and (?7 is null or e.id < ?7)
order by e.id desc
limit ?8
