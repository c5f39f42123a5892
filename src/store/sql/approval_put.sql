-- approval_put
-- demands one row: something is proposed already
insert into ibid.approval (
	tenant, id, subject_type, subject_id, action, parameters, proposed_by, proposed_token, reason, proposed_at)
values (
	:tenant, :id, :subject_type, :subject_id, :action, :parameters, :proposed_by, :proposed_token, :reason, :proposed_at)
on conflict (tenant collate "POSIX", subject_type, subject_id) where decided_at is null -- sqlite: on conflict (tenant, subject_type, subject_id) where decided_us = 0
do nothing
