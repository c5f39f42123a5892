-- event_list: $1 tenant, $2 limit
-- Newest first.
select
	id, command_id, tenant, aggregatetype, aggregateid, type, payload, version, key, ordinal,
	correlation_id, causation_id, traceparent, tracestate, ibid_internal.microseconds(created_at),
	topic, partition_key, headers
from ibid.event
where tenant = $1
order by id desc
limit $2
