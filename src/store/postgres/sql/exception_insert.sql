-- exception_insert: $1 tenant, $2 id, $3 queue, $4 severity, $5 subject type, $6 subject id,
--   $7 business key, $8 source, $9 payload reference, $10 reason, $11 detail, $12 suggestion, $13 owner,
--   $14 retryable, $15 actions, $16 correlation id, $17 document type, $18 document id, $19 opened,
--   $20 due, $21 trace id, $22 actions that need approval, $23 service answer
-- The same trouble of the same subject is the item that is open already.
insert into ibid.exception (tenant, id, queue, state, severity, subject_type, subject_id, business_key,
	source, payload_ref, reason, detail, suggestion, owner, retryable, actions, correlation_id,
	document_type, document_id, opened_at, due_at, trace_id, needs_approval, service_answer)
values ($1, $2, $3, 'OPEN', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
	$21, $22, $23)
on conflict (tenant collate "POSIX", queue, subject_type, subject_id) where state = 'OPEN' do nothing
