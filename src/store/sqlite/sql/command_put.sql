-- command_put: ?1 to ?4 tenant, operation, scope, key; ?5 id, ?6 state, ?7 scheme, ?8 contract_version,
-- ?9 fingerprint, ?10 linked, ?11 status, ?12 resource_type, ?13 resource_id, ?14 reason, ?15 text,
-- ?16 audit_id, ?17 attempts, ?18 client, ?19 actor, ?20 created_us, ?21 finished_us, ?22 expires_us,
-- ?23 lease_token, ?24 lease_until_us, ?25 correlation_id, ?26 causation_id, ?27 traceparent, ?28 tracestate
-- A primary-key violation means that the identity was used: the constraint arbitrates (I2).
insert into ibid_command (
  tenant, operation, scope, key, id, state, scheme, contract_version, fingerprint, linked, status,
  resource_type, resource_id, reason, text, audit_id, attempts, client, actor, created_us,
  finished_us, expires_us, lease_token, lease_until_us, correlation_id, causation_id,
  traceparent, tracestate)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
  ?23, ?24, ?25, ?26, ?27, ?28)
