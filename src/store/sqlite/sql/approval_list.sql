-- approval_list: ?1 tenant, ?2 subject_type, ?3 subject_id, ?4 at most
-- Newest first.
select
  a.tenant, a.id, a.subject_type, a.subject_id, a.action, a.parameters, a.proposed_by, a.proposed_token,
  a.reason, a.proposed_us, a.decision, a.decided_by, a.decided_token, a.decided_reason, a.decided_us
from ibid_approval a indexed by ibid_approval_subject
where a.tenant = ?1 and a.subject_type = ?2 and a.subject_id = ?3
order by a.id desc
limit ?4
