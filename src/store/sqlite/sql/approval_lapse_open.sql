-- approval_lapse_open: ?1 tenant, ?2 queue, ?3 subject_type, ?4 subject_id, ?5 decided_us, ?6 decided_by
-- What was proposed for the exception that is open, before that is resolved.
update ibid_approval indexed by ibid_approval_waiting
set decision = 'LAPSED', decided_us = ?5, decided_by = ?6, parameters = null
where tenant = ?1 and subject_type = 'exception' and decided_us = 0 and subject_id = (
  select e.id from ibid_exception e indexed by ibid_exception_open
  where e.tenant = ?1 and e.queue = ?2 and e.subject_type = ?3 and e.subject_id = ?4 and e.state = 'OPEN')
