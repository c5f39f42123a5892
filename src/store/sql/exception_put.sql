-- exception_put
-- The same trouble of the same subject is the item that is open already.
insert into ibid.exception (
	tenant, id, queue, state, severity, subject_type, subject_id, business_key, source, payload_ref, reason, detail,
	suggestion, owner, retryable, actions, correlation_id, document_type, document_id, opened_at, due_at, trace_id,
	needs_approval, service_answer)
values (
	:tenant, :id, :queue, 'OPEN', :severity, :subject_type, :subject_id, :business_key, :source, :payload_ref, :reason,
	:detail, :suggestion, :owner, :retryable, :actions, :correlation_id, :document_type, :document_id, :opened_at, :due_at,
	:trace_id, coalesce(:needs_approval, ''), :service_answer)
on conflict (tenant collate "POSIX", queue, subject_type, subject_id) where state = 'OPEN' do nothing
