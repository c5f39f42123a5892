-- exception_resolve
-- The item that is open for a subject, if there is one. The collation chooses the index.
update ibid.exception -- sqlite: update ibid_exception indexed by ibid_exception_open
set state = 'RESOLVED', resolved_at = :resolved_at, resolution = :resolution, resolved_by = :resolved_by, note = :note
where tenant collate "POSIX" = :tenant and queue = :queue and subject_type = :subject_type and subject_id = :subject_id
	and state = 'OPEN'
