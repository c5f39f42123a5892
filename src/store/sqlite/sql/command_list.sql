-- command_list: ?1 tenant; null for all of them: ?2 operation, ?3 key, ?4 state, ?5 older than this id;
-- ?6 at most; ?7 client, null for all of them
-- Newest first. Ids start with a hex digit, so 'g' stands for "from the newest".
select
  c.tenant, c.operation, c.scope, c.key, c.id, c.state, c.scheme, c.contract_version, c.fingerprint,
  c.linked, c.status, c.resource_type, c.resource_id, c.reason, c.text, c.audit_id, c.attempts,
  c.client, c.actor, c.created_us, c.finished_us, c.expires_us, c.lease_token, c.lease_until_us,
  c.correlation_id, c.causation_id, c.traceparent, c.tracestate,
  a.body
from ibid_command c
left join ibid_answer a on a.tenant = c.tenant and a.command_id = c.id
where c.tenant = ?1 and c.id < coalesce(?5, 'g')
  and (?2 is null or c.operation = ?2)
  and (?3 is null or c.key = ?3)
  and (?4 is null or c.state = ?4)
  and (?7 is null or c.client = ?7)
order by c.id desc
limit ?6
