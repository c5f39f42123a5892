-- approval_insert: $1 tenant, $2 id, $3 subject type, $4 subject id, $5 action, $6 parameters, $7 proposed by,
--   $8 token, $9 reason, $10 proposed
-- It fails the transaction when one waits for the subject already.
with put as (
	insert into ibid.approval (tenant, id, subject_type, subject_id, action, parameters, proposed_by, proposed_token,
		reason, proposed_at)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
	on conflict (tenant collate "POSIX", subject_type, subject_id) where decided_at is null do nothing
	returning 1)
select ibid.demand(exists (select from put), 'IB006', 'something is proposed already')
