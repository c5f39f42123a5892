-- exception_resolve: $1 tenant, $2 queue, $3 subject type, $4 subject id, $5 resolved, $6 resolution,
--   $7 resolved by, $8 note
-- The item that is open, if there is one, and what was proposed for it. The collation chooses its index: see
-- 002_exception.sql.
with ended as (
	update ibid.exception
	set state = 'RESOLVED', resolved_at = $5, resolution = $6, resolved_by = $7, note = $8
	where tenant collate "POSIX" = $1 and queue = $2 and subject_type = $3 and subject_id = $4 and state = 'OPEN'
	returning tenant, id)
update ibid.approval as a
set decision = 'LAPSED', decided_at = $5, decided_by = $7, parameters = null
from ended as e
where a.tenant collate "POSIX" = e.tenant and a.subject_type = 'exception' and a.subject_id = e.id::text
	and a.decided_at is null
