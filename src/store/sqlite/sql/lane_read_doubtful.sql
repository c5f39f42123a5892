-- lane_read_doubtful: ?1 lane, ?2 behind this seq, ?3 destination
-- lane_read, and whether there is evidence that it arrived, or a person's decision that it is not to.
select
  seq,
  exists (select 1 from ibid_delivery as d
    where d.tenant = e.tenant and d.event_id = e.id and d.destination = ?3)
  or exists (select 1 from ibid_delivery_hold as h
    where h.tenant = e.tenant and h.event_id = e.id and h.destination = ?3 and h.passed) as arrived,
  id, command_id, tenant, aggregatetype, aggregateid, type, payload, version, key, ordinal,
  correlation_id, causation_id, traceparent, tracestate, created_us, topic,
  partition_key, coalesce(headers, '{}') as headers
from ibid_event as e
where lane = ?1 and seq > ?2 and topic is not null
order by seq
