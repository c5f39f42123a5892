-- approval_lapse
-- What was proposed for an exception, but for the proposal that is decided with it. The exception is held before its
-- proposals everywhere, so that two who end it can't deadlock.
update ibid.approval -- sqlite: update ibid_approval indexed by ibid_approval_waiting
set decision = 'LAPSED', decided_at = :resolved_at, decided_by = :resolved_by, parameters = null
where tenant collate "POSIX" = :tenant and subject_type = 'exception'
	and subject_id = :id::uuid::text -- sqlite: and subject_id = :id
	and decided_at is null -- sqlite: and decided_us = 0
	and id is distinct from :approval::uuid
