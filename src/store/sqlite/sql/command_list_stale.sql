-- command_list_stale: ?1 tenant, ?2 operation (null: all of them), ?3 now, ?4 at most
-- Leases that have ended, along the index of leases. Null never ends.
select
  c.tenant, c.operation, c.scope, c.key, c.id, c.state, c.scheme, c.contract_version, c.fingerprint,
  c.linked, c.status, c.resource_type, c.resource_id, c.reason, c.text, c.audit_id, c.attempts,
  c.client, c.actor, c.created_us, c.finished_us, c.expires_us, c.lease_token, c.lease_until_us,
  c.correlation_id, c.causation_id, c.traceparent, c.tracestate,
  null
from ibid_command c
where c.state = 'IN_PROGRESS' and c.lease_until_us < ?3
  and (?1 is null or c.tenant = ?1)
  and (?2 is null or c.operation = ?2)
order by c.lease_until_us
limit ?4
