-- group_events: arrays. An element for each aggregate, in the order in which heads are moved: $1 tenants, $2 types,
--   $3 ids, $4 how many events, $5 whether one is sent. An element for each event: $6 tenants, $7 ids, $8 keys,
--   $9 command ids, $10 ordinals, $11 aggregate types, $12 aggregate ids, $13 types, $14 payloads, $15 how many of its
--   aggregate come after it, $16 whether one that is sent comes before it, $17 correlation ids, $18 causation ids,
--   $19 times, $20 traceparents, $21 tracestates, $22 topics, $23 partition keys, $24 headers
-- append_event for many, without versions and keys of their own: each head is moved once, by as many as its aggregate has
-- here.
with moved as (
	insert into ibid.aggregate as head (tenant, type, id, version, lane, xid)
	select tenant, type, id, events, ibid_internal.lane_of(tenant, type, id), case when sent then pg_current_xact_id() end
	from (
		select unnest($1::text[]) as tenant, unnest($2::text[]) as type, unnest($3::text[]) as id, unnest($4::int[]) as events,
			unnest($5::boolean[]) as sent
	) as each
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
from (
	select unnest($6::text[]) as tenant, unnest($7::uuid[]) as id, unnest($8::text[]) as key,
		unnest($9::uuid[]) as command_id, unnest($10::int[]) as ordinal, unnest($11::text[]) as aggregate_type,
		unnest($12::text[]) as aggregate_id, unnest($13::text[]) as type, unnest($14::text[]) as payload,
		unnest($15::int[]) as behind, unnest($16::boolean[]) as later, unnest($17::text[]) as correlation_id,
		unnest($18::text[]) as causation_id, unnest($19::timestamptz[]) as at, unnest($20::text[]) as traceparent,
		unnest($21::text[]) as tracestate, unnest($22::text[]) as topic, unnest($23::text[]) as partition_key,
		unnest($24::text[]) as headers
) as each
join moved on moved.tenant = each.tenant and moved.type = each.aggregate_type and moved.id = each.aggregate_id
