-- event_list_by_command: ?1 tenant, ?2 first id, ?3 last id, ?4 at most
select
  id, command_id, tenant, aggregatetype, aggregateid, type, payload, version, key, ordinal,
  correlation_id, causation_id, traceparent, tracestate, created_us, topic,
  partition_key, coalesce(headers, '{}')
from ibid_event
where tenant = ?1 and id between ?2 and ?3
order by id
limit ?4
