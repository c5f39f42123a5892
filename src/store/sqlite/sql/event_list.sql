-- event_list: ?1 tenant, ?2 at most
-- Newest first: one writer made seq the order of commits. The plus keeps the planner from sorting all
-- events of the tenant; it reads from the end of the table instead.
select
  id, command_id, tenant, aggregatetype, aggregateid, type, payload, version, key, ordinal,
  correlation_id, causation_id, traceparent, tracestate, created_us, topic,
  partition_key, coalesce(headers, '{}')
from ibid_event
where +tenant = ?1
order by seq desc
limit ?2
