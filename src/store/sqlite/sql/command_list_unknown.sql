-- command_list_unknown: ?1 tenant, ?2 operation, ?3 newer than this id (null: all of them); ?4 at most
-- Commands that were staged and whose outcome nobody knows, the oldest first; along the index of leases, which
-- holds nothing that has an outcome: all of it is read, and sorted.
select
  c.tenant, c.operation, c.scope, c.key, c.id, c.state, c.scheme, c.contract_version, c.fingerprint,
  c.linked, c.status, c.resource_type, c.resource_id, c.reason, c.text, c.audit_id, c.attempts,
  c.client, c.actor, c.created_us, c.finished_us, c.expires_us, c.lease_token, c.lease_until_us,
  c.correlation_id, c.causation_id, c.traceparent, c.tracestate,
  null
from ibid_command c indexed by ibid_command_lease
where (c.state = 'IN_PROGRESS' or c.state = 'UNKNOWN') and c.state = 'UNKNOWN' and c.lease_token is not null
  and (?1 is null or c.tenant = ?1)
  and (?2 is null or c.operation = ?2)
  and (?3 is null or c.id > ?3)
order by c.id
limit ?4
