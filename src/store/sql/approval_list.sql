-- approval_list
-- The newest first. The collation chooses the index.
select
	a.tenant, a.id, a.subject_type, a.subject_id, a.action, a.parameters, a.proposed_by, a.proposed_token, a.reason,
	instant(a.proposed_at), a.decision, a.decided_by, a.decided_token, a.decided_reason, instant(a.decided_at)
from ibid.approval as a -- sqlite: from ibid_approval as a indexed by ibid_approval_subject
where a.tenant collate "POSIX" = :tenant and a.subject_type = :subject_type and a.subject_id = :subject_id
order by a.id desc
limit :limit
