-- exception_park
-- exception_put; of a delivery, whose subject is "destination/event id", only where the event is parked: a person may have
-- decided meanwhile.
insert into ibid.exception (
	tenant, id, queue, state, severity, subject_type, subject_id, business_key, source, payload_ref, reason, detail,
	suggestion, owner, retryable, actions, correlation_id, document_type, document_id, opened_at, due_at, trace_id,
	needs_approval)
select
	:tenant, :id, :queue, 'OPEN', :severity, :subject_type, :subject_id, :business_key, :source, :payload_ref, :reason,
	:detail, :suggestion, :owner, :retryable, :actions, :correlation_id, :document_type, :document_id, :opened_at, :due_at,
	:trace_id, coalesce(:needs_approval::text, '')
where :subject_type::text <> 'delivery' or exists (
	select 1 from ibid_delivery_hold
	where tenant = :tenant and event_id = substr(:subject_id, -36)
		and destination = substr(:subject_id, 1, length(:subject_id) - 37) and state = 'PARKED')
on conflict (tenant collate "POSIX", queue, subject_type, subject_id) where state = 'OPEN' do nothing
