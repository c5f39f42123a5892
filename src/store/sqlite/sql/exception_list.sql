-- exception_list: ?1 tenant, ?2 queue, ?3 state, ?4 owner, ?5 subject_type, ?6 subject_id,
-- ?7 older than this id, ?9 assignee (null: all of them); ?8 at most
-- The newest of a tenant, or of all. There is no index on id alone (I9): the tenants are walked through
-- the primary key, the newest of each are taken, and the newest of those remain. Ids start with a hex
-- digit, so 'g' stands for "from the newest".
with recursive tenants (tenant) as (
  select coalesce(?1, (select min(tenant) from ibid_exception))
  union all
  select (select min(n.tenant) from ibid_exception n where n.tenant > tenants.tenant)
  from tenants
  where ?1 is null and tenants.tenant is not null
)
select
  e.tenant, e.id, e.queue, e.state, e.severity, e.subject_type, e.subject_id, e.business_key, e.source,
  e.payload_ref, e.reason, e.detail, e.suggestion, e.owner, e.retryable, e.actions, e.correlation_id,
  e.document_type, e.document_id, e.opened_us, e.due_us, e.resolved_us, e.resolution, e.resolved_by,
  e.note, e.trace_id, e.needs_approval, e.assignee, null
from tenants
join ibid_exception e on e.tenant = tenants.tenant and e.id in (
  select i.id
  from ibid_exception i
  where i.tenant = tenants.tenant and i.id < coalesce(?7, 'g')
    and (?2 is null or i.queue = ?2)
    and (?3 is null or i.state = ?3)
    and (?4 is null or i.owner = ?4)
    and (?5 is null or i.subject_type = ?5)
    and (?6 is null or i.subject_id = ?6)
    and (?9 is null or i.assignee = ?9)
  order by i.id desc
  limit ?8)
order by e.id desc
limit ?8
