-- audit_list_by_command: ?1 tenant, ?2 command_id, ?3 at most
select
  id, command_id, tenant, operation, fact, outcome, contract_version, client, actor,
  resource_type, resource_id, correlation_id, causation_id, traceparent, tracestate, fingerprint, at_us
from ibid_audit
where tenant = ?1 and id = ?2
limit ?3
