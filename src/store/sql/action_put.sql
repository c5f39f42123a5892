-- action_put
-- demands one row: the action is there already
insert into ibid.action (
	tenant, id, at, actor, token, role, action, subject_type, subject_id, reason, parameters, approval_id)
values (:tenant, :id, :at, :actor, :token, :role, :action, :subject_type, :subject_id, :reason, :parameters, :approval_id)
