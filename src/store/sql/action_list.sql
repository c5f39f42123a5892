-- action_list
-- The oldest first. The collation chooses the index.
select
	a.tenant, a.id, instant(a.at), a.actor, a.token, a.role, a.action, a.subject_type, a.subject_id, a.reason,
	a.parameters, a.approval_id
from ibid.action as a -- sqlite: from ibid_action as a indexed by ibid_action_subject
where a.tenant collate "POSIX" = :tenant and a.subject_type = :subject_type and a.subject_id = :subject_id
order by a.id
limit :limit
