-- action_put: ?1 tenant, ?2 id, ?3 at_us, ?4 actor, ?5 token, ?6 role, ?7 action, ?8 subject_type,
-- ?9 subject_id, ?10 reason, ?11 parameters, ?12 approval_id
insert into ibid_action (
  tenant, id, at_us, actor, token, role, action, subject_type, subject_id, reason, parameters, approval_id)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
