-- exception_end: ?1 tenant, ?2 id, ?3 resolved_us, ?4 resolution, ?5 resolved_by, ?6 note
update ibid_exception
set state = 'RESOLVED', resolved_us = ?3, resolution = ?4, resolved_by = ?5, note = ?6
where tenant = ?1 and id = ?2 and state = 'OPEN'
