-- approval_decide: $1 tenant, $2 id, $3 decision, $4 decided by, $5 token, $6 reason, $7 decided,
--   $8 parameters that stay
-- It fails the transaction when it does not wait any more.
with decided as (
	update ibid.approval
	set decision = $3, decided_by = $4, decided_token = $5, decided_reason = $6, decided_at = $7, parameters = $8
	where tenant = $1 and id = $2 and decided_at is null
	returning 1)
select ibid.demand(exists (select from decided), 'IB006', 'the proposal is decided already')
