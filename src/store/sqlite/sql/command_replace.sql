-- command_replace: ?1 to ?28 as in command_put; the row that was read: ?29 id, ?30 state, ?31 attempts,
-- ?32 lease_token; ?33 now
-- Compare-and-set: no row is changed when the row is no longer the one that was read, or when a lease
-- would be taken over that has not ended.
update ibid_command set
  id = ?5, state = ?6, scheme = ?7, contract_version = ?8, fingerprint = ?9, linked = ?10, status = ?11,
  resource_type = ?12, resource_id = ?13, reason = ?14, text = ?15, audit_id = ?16, attempts = ?17,
  client = ?18, actor = ?19, created_us = ?20, finished_us = ?21, expires_us = ?22,
  lease_token = ?23, lease_until_us = ?24, correlation_id = ?25, causation_id = ?26, traceparent = ?27,
  tracestate = ?28
where tenant = ?1 and operation = ?2 and scope = ?3 and key = ?4
  and id = ?29 and state = ?30 and attempts = ?31 and lease_token is ?32
  and (?6 <> 'IN_PROGRESS' or state <> 'IN_PROGRESS' or lease_until_us < ?33)
