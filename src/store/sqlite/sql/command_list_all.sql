-- command_list_all: ?1 operation, ?2 key, ?3 state, ?4 older than this id (null: all of them); ?5 at most;
--   ?6 client, null for all of them
-- The newest of all tenants. There is no index on id alone (I9): the tenants are walked through the
-- index, the newest of each are taken, and the newest of those remain.
with recursive tenants (tenant) as (
  select min(tenant) from ibid_command
  union all
  select (select min(n.tenant) from ibid_command n where n.tenant > tenants.tenant)
  from tenants
  where tenants.tenant is not null
)
select
  c.tenant, c.operation, c.scope, c.key, c.id, c.state, c.scheme, c.contract_version, c.fingerprint,
  c.linked, c.status, c.resource_type, c.resource_id, c.reason, c.text, c.audit_id, c.attempts,
  c.client, c.actor, c.created_us, c.finished_us, c.expires_us, c.lease_token, c.lease_until_us,
  c.correlation_id, c.causation_id, c.traceparent, c.tracestate,
  a.body
from tenants
join ibid_command c on c.tenant = tenants.tenant and c.id in (
  select i.id
  from ibid_command i
  where i.tenant = tenants.tenant and i.id < coalesce(?4, 'g')
    and (?1 is null or i.operation = ?1)
    and (?2 is null or i.key = ?2)
    and (?3 is null or i.state = ?3)
    and (?6 is null or i.client = ?6)
  order by i.id desc
  limit ?5)
left join ibid_answer a on a.tenant = c.tenant and a.command_id = c.id
order by c.id desc
limit ?5
