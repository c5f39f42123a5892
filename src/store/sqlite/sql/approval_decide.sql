-- approval_decide: ?1 tenant, ?2 id, ?3 decision, ?4 decided_by, ?5 decided_token, ?6 decided_reason,
-- ?7 decided_us, ?8 parameters that stay
update ibid_approval
set decision = ?3, decided_by = ?4, decided_token = ?5, decided_reason = ?6, decided_us = ?7, parameters = ?8
where tenant = ?1 and id = ?2 and decided_us = 0
