-- audit_put: ?1 id, ?2 command_id, ?3 tenant, ?4 operation, ?5 fact, ?6 outcome, ?7 contract_version,
-- ?8 client, ?9 actor, ?10 resource_type, ?11 resource_id, ?12 correlation_id, ?13 causation_id,
-- ?14 traceparent, ?15 tracestate, ?16 fingerprint, ?17 at_us
insert into ibid_audit (
  id, command_id, tenant, operation, fact, outcome, contract_version, client, actor, resource_type,
  resource_id, correlation_id, causation_id, traceparent, tracestate, fingerprint, at_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
