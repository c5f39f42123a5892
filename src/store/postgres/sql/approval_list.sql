-- approval_list: $1 tenant, $2 subject type, $3 subject id, $4 limit
-- Newest first. The collation chooses the index: see 002_action.sql.
select a.tenant, a.id, a.subject_type, a.subject_id, a.action, a.parameters, a.proposed_by, a.proposed_token,
	a.reason, (extract(epoch from a.proposed_at) * 1000000)::bigint, a.decision, a.decided_by, a.decided_token,
	a.decided_reason, (extract(epoch from a.decided_at) * 1000000)::bigint
from ibid.approval as a
where a.tenant collate "POSIX" = $1 and a.subject_type = $2 and a.subject_id = $3
order by a.id desc
limit $4
