-- delivery_hold_list: ?1 destination, ?2 lane
-- By aggregate and version, each with its event, which retention leaves while it is here; and whether it was on
-- its way when it was cancelled.
select
  h.state = 'CANCELLED' and exists (select 1 from ibid_delivery as d
    where d.tenant = h.tenant and d.event_id = h.event_id and d.destination = ?1) as arrived,
  h.state, h.attempts, h.failure, h.reason, h.why, h.next_us, h.since_us,
  e.id, e.command_id, e.tenant, e.aggregatetype, e.aggregateid, e.type, e.payload, e.version, e.key, e.ordinal,
  e.correlation_id, e.causation_id, e.traceparent, e.tracestate, e.created_us, e.topic,
  e.partition_key, coalesce(e.headers, '{}') as headers
from ibid_delivery_hold as h
join ibid_event as e on e.tenant = h.tenant and e.id = h.event_id
where h.destination = ?1 and h.lane = ?2 and not h.passed
order by h.tenant, h.aggregatetype, h.aggregateid, h.version
