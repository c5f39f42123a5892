-- group_events: arrays. An element for each aggregate, in the order in which heads are moved: $1 tenants, $2 types,
--   $3 ids, $4 how many events, $5 whether one is sent. An element for each event: $6 tenants, $7 ids, $8 keys,
--   $9 command ids, $10 ordinals, $11 aggregate types, $12 aggregate ids, $13 types, $14 payloads, $15 how many of its
--   aggregate come after it, $16 whether one that is sent comes before it, $17 correlation ids, $18 causation ids,
--   $19 times, $20 traceparents, $21 tracestates, $22 topics, $23 partition keys, $24 headers
-- append_event for many, without versions and keys of their own: each head is moved once, by as many as its aggregate has
-- here.
with moved as (
	insert into ibid.aggregate as head (tenant, type, id, version, lane, xid)
	select tenant, type, id, events, ibid.lane_of(tenant, type, id), case when sent then pg_current_xact_id() end
	from unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::boolean[]) as each(tenant, type, id, events, sent)
	on conflict (tenant, type, id) do update set version = head.version + excluded.version,
		xid = coalesce(excluded.xid, head.xid),
		before = case when excluded.xid is null then head.before else head.xid end
	returning head.tenant, head.type, head.id, head.version, head.lane, head.before
)
insert into ibid.event (tenant, id, command_id, ordinal, aggregatetype, aggregateid, type, payload, version, key,
	correlation_id, causation_id, partition_key, created_at, traceparent, tracestate, topic,
	headers, lane, follows)
select each.tenant, each.id, each.command_id, each.ordinal, each.aggregate_type, each.aggregate_id, each.type, each.payload,
	moved.version - each.behind, each.key, each.correlation_id, each.causation_id, each.partition_key, each.at,
	each.traceparent, each.tracestate, each.topic, each.headers, moved.lane,
	case when each.topic is null then null when each.later then pg_current_xact_id() else moved.before end
from unnest($6::text[], $7::uuid[], $8::text[], $9::uuid[], $10::int[], $11::text[], $12::text[], $13::text[], $14::text[],
		$15::int[], $16::boolean[], $17::text[], $18::text[], $19::timestamptz[], $20::text[], $21::text[], $22::text[],
		$23::text[], $24::text[])
	as each(tenant, id, key, command_id, ordinal, aggregate_type, aggregate_id, type, payload, behind, later, correlation_id,
		causation_id, at, traceparent, tracestate, topic, partition_key, headers)
join moved on moved.tenant = each.tenant and moved.type = each.aggregate_type and moved.id = each.aggregate_id
