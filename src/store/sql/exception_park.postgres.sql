-- exception_park
-- exception_put; of a delivery, whose subject is "destination/event id", only where the event is parked and nobody decided
-- meanwhile: its row is held until the transaction ends.
with parked as materialized (
	select from ibid.delivery_hold
	where :subject_type::text = 'delivery' and state = 'PARKED' and tenant = :tenant
		and destination = split_part(:subject_id::text, '/', 1)
		and event_id = case when :subject_type::text = 'delivery' then split_part(:subject_id::text, '/', 2)::uuid end
	for share)
insert into ibid.exception (
	tenant, id, queue, state, severity, subject_type, subject_id, business_key, source, payload_ref, reason, detail,
	suggestion, owner, retryable, actions, correlation_id, document_type, document_id, opened_at, due_at, trace_id,
	needs_approval)
select
	:tenant, :id, :queue, 'OPEN', :severity, :subject_type, :subject_id, :business_key, :source, :payload_ref, :reason,
	:detail, :suggestion, :owner, :retryable, :actions, :correlation_id, :document_type, :document_id, :opened_at, :due_at,
	:trace_id, coalesce(:needs_approval::text, '')
where :subject_type::text <> 'delivery' or exists (select from parked)
on conflict (tenant collate "POSIX", queue, subject_type, subject_id) where state = 'OPEN' do nothing
