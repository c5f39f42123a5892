-- action_list: ?1 tenant, ?2 subject_type, ?3 subject_id, ?4 at most
-- Oldest first.
select
  a.tenant, a.id, a.at_us, a.actor, a.token, a.role, a.action, a.subject_type, a.subject_id, a.reason,
  a.parameters, a.approval_id
from ibid_action a indexed by ibid_action_subject
where a.tenant = ?1 and a.subject_type = ?2 and a.subject_id = ?3
order by a.id
limit ?4
