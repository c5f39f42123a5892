-- approval_lapse: ?1 tenant, ?2 id of the exception, ?3 decided_us, ?4 decided_by, ?5 a proposal that is
-- decided with the exception, or null
update ibid_approval indexed by ibid_approval_waiting
set decision = 'LAPSED', decided_us = ?3, decided_by = ?4, parameters = null
where tenant = ?1 and subject_type = 'exception' and subject_id = ?2 and decided_us = 0 and id is not ?5
