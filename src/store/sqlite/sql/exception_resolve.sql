-- exception_resolve: ?1 tenant, ?2 queue, ?3 subject_type, ?4 subject_id, ?5 resolved_us, ?6 resolution,
-- ?7 resolved_by, ?8 note
-- The item that is open, if there is one.
update ibid_exception indexed by ibid_exception_open
set state = 'RESOLVED', resolved_us = ?5, resolution = ?6, resolved_by = ?7, note = ?8
where tenant = ?1 and queue = ?2 and subject_type = ?3 and subject_id = ?4 and state = 'OPEN'
