-- lane_read: ?1 lane, ?2 behind this seq
-- In the order of commits, which one writer made the order of seq. Whoever has enough stops stepping.
select
  seq, 0 as arrived,
  id, command_id, tenant, aggregatetype, aggregateid, type, payload, version, key, ordinal,
  correlation_id, causation_id, traceparent, tracestate, created_us, topic,
  partition_key, coalesce(headers, '{}') as headers
from ibid_event
where lane = ?1 and seq > ?2 and topic is not null
order by seq
