-- event_list_command: $1 tenant, $2 first id, $3 last id, $4 limit
-- The events of one command: their ids are a range (see ibid.append_event).
select
	id, command_id, tenant, aggregatetype, aggregateid, type, payload, version, key, ordinal,
	correlation_id, causation_id, traceparent, tracestate, ibid_internal.microseconds(created_at),
	topic, partition_key, headers
from ibid.event
where tenant = $1 and id between $2 and $3
order by id
limit $4
