-- exception_put: ?1 tenant, ?2 id, ?3 queue, ?4 severity, ?5 subject_type, ?6 subject_id,
-- ?7 business_key, ?8 source, ?9 payload_ref, ?10 reason, ?11 detail, ?12 suggestion, ?13 owner,
-- ?14 retryable, ?15 actions, ?16 correlation_id, ?17 document_type, ?18 document_id, ?19 opened_us,
-- ?20 due_us, ?21 trace_id, ?22 needs_approval, ?23 service_answer
-- The same trouble of the same subject is the item that is open already.
insert into ibid_exception (
  tenant, id, queue, state, severity, subject_type, subject_id, business_key, source, payload_ref,
  reason, detail, suggestion, owner, retryable, actions, correlation_id, document_type, document_id,
  opened_us, due_us, trace_id, needs_approval, service_answer)
values (?1, ?2, ?3, 'OPEN', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
  ?21, ?22, ?23)
on conflict (tenant, queue, subject_type, subject_id) where state = 'OPEN' do nothing
