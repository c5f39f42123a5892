-- approval_put: ?1 tenant, ?2 id, ?3 subject_type, ?4 subject_id, ?5 action, ?6 parameters, ?7 proposed_by,
-- ?8 proposed_token, ?9 reason, ?10 proposed_us
-- No row is put where one waits for the subject already.
insert into ibid_approval (
  tenant, id, subject_type, subject_id, action, parameters, proposed_by, proposed_token, reason, proposed_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
on conflict (tenant, subject_type, subject_id) where decided_us = 0 do nothing
