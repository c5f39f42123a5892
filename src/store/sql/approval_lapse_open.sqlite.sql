-- approval_lapse_open
-- What was proposed for the exception that is open for a subject, before that is resolved.
update ibid_approval indexed by ibid_approval_waiting
set decision = 'LAPSED', decided_us = :resolved_at, decided_by = :resolved_by, parameters = null
where tenant = :tenant and subject_type = 'exception' and decided_us = 0 and subject_id = (
	select e.id from ibid_exception as e indexed by ibid_exception_open
	where e.tenant = :tenant and e.queue = :queue and e.subject_type = :subject_type and e.subject_id = :subject_id
		and e.state = 'OPEN')
