-- audit_list: ?1 tenant, ?2 at most
-- Newest first: ids are ordered by time.
select
  id, command_id, tenant, operation, fact, outcome, contract_version, client, actor,
  resource_type, resource_id, correlation_id, causation_id, traceparent, tracestate, fingerprint, at_us
from ibid_audit
where tenant = ?1
order by id desc
limit ?2
