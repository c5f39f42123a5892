-- action_list: $1 tenant, $2 subject type, $3 subject id, $4 limit
-- Oldest first. The collation chooses the index: see 002_action.sql.
select a.tenant, a.id, (extract(epoch from a.at) * 1000000)::bigint, a.actor, a.token, a.role, a.action,
	a.subject_type, a.subject_id, a.reason, a.parameters, a.approval_id
from ibid.action as a
where a.tenant collate "POSIX" = $1 and a.subject_type = $2 and a.subject_id = $3
order by a.id
limit $4
