-- approval_lapse_open
-- What was proposed for the exception that is open for a subject, before that is resolved. The exception is held before its
-- proposals everywhere, so that two who end it can't deadlock. The collation chooses the index.
with held as materialized (
	select tenant, id from ibid.exception
	where tenant collate "POSIX" = :tenant and queue = :queue and subject_type = :subject_type and subject_id = :subject_id
		and state = 'OPEN'
	for update)
update ibid.approval as a
set decision = 'LAPSED', decided_at = :resolved_at, decided_by = :resolved_by, parameters = null
from held as e
where a.tenant collate "POSIX" = e.tenant and a.subject_type = 'exception' and a.subject_id = e.id::text
	and a.decided_at is null
