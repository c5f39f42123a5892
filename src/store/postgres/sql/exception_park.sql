-- exception_park: as exception_insert
-- exception_insert; of a delivery, whose subject is "destination/event id", only where the event is parked and nobody decided
-- meanwhile: its row is held until the transaction ends.
with parked as materialized (
	select from ibid.delivery_hold
	where $5 = 'delivery' and state = 'PARKED' and tenant = $1 and destination = split_part($6, '/', 1)
		and event_id = case when $5 = 'delivery' then split_part($6, '/', 2)::uuid end
	for share)
insert into ibid.exception (tenant, id, queue, state, severity, subject_type, subject_id, business_key,
	source, payload_ref, reason, detail, suggestion, owner, retryable, actions, correlation_id,
	document_type, document_id, opened_at, due_at, trace_id, needs_approval)
select $1, $2, $3, 'OPEN', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
	$21, $22
where $5 <> 'delivery' or exists (select from parked)
on conflict (tenant collate "POSIX", queue, subject_type, subject_id) where state = 'OPEN' do nothing
