-- command_replace: ?1 to ?24 as in command_put; the row that was read: ?25 id, ?26 state, ?27 attempts,
-- ?28 lease_token; ?29 now
-- Compare-and-set: no row is changed when the row is no longer the one that was read, or when a lease
-- would be taken over that has not ended.
update ibid_command set
  id = ?5, state = ?6, scheme = ?7, contract_version = ?8, fingerprint = ?9, linked = ?10, status = ?11,
  resource_type = ?12, resource_id = ?13, reason = ?14, text = ?15, audit_id = ?16, attempts = ?17,
  client = ?18, actor = ?19, created_us = ?20, finished_us = ?21, expires_us = ?22,
  lease_token = ?23, lease_until_us = ?24
where tenant = ?1 and operation = ?2 and scope = ?3 and key = ?4
  and id = ?25 and state = ?26 and attempts = ?27 and lease_token is ?28
  and (?6 <> 'IN_PROGRESS' or state <> 'IN_PROGRESS' or lease_until_us < ?29)
