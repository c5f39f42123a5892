-- approval_decide
-- demands one row: the proposal is decided already
update ibid.approval
set decision = :decision, decided_by = :decided_by, decided_token = :decided_token, decided_reason = :decided_reason,
	decided_at = :decided_at, parameters = :parameters
where tenant = :tenant and id = :id
	and decided_at is null -- sqlite: and decided_us = 0
