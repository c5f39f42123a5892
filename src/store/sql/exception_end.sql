-- exception_end
-- demands one row: the exception is not open
update ibid.exception
set state = 'RESOLVED', resolved_at = :resolved_at, resolution = :resolution, resolved_by = :resolved_by, note = :note
where tenant = :tenant and id = :id and state = 'OPEN'
