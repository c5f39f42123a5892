-- lane_read_doubtful: ?1 lane, ?2 behind this seq, ?3 destination
-- lane_read, and whether there is evidence that it arrived.
select
  seq,
  exists (select 1 from ibid_delivery as d
    where d.tenant = e.tenant and d.event_id = e.id and d.destination = ?3) as arrived,
  id, command_id, tenant, aggregatetype, aggregateid, type, payload, version, key, ordinal,
  correlation_id, causation_id, traceparent, tracestate, created_us, topic,
  partition_key, coalesce(headers, '{}')
from ibid_event as e
where lane = ?1 and seq > ?2 and topic is not null
order by seq
