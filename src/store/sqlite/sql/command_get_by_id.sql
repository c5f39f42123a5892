-- command_get_by_id: ?1 tenant, ?2 id
select
  c.tenant, c.operation, c.scope, c.key, c.id, c.state, c.scheme, c.contract_version, c.fingerprint,
  c.linked, c.status, c.resource_type, c.resource_id, c.reason, c.text, c.audit_id, c.attempts,
  c.client, c.actor, c.created_us, c.finished_us, c.expires_us, c.lease_token, c.lease_until_us,
  c.correlation_id, c.causation_id, c.traceparent, c.tracestate,
  a.body
from ibid_command c
left join ibid_answer a on a.tenant = c.tenant and a.command_id = c.id
where c.tenant = ?1 and c.id = ?2
