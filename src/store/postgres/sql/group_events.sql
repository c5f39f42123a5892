-- group_events: arrays, an element for each event: $1 tenants, $2 command ids, $3 ordinals, $4 aggregate types,
--   $5 aggregate ids, $6 types, $7 payloads, $8 correlation ids, $9 causation ids, $10 times, $11 traces as in group_turn,
--   $12 topics, $13 partition keys, $14 headers
-- append_event for many, without versions and keys of their own: each head is moved once, by as many as its aggregate has
-- here, and in one order.
with each as (
	select * from unnest($1::text[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
		$9::text[], $10::timestamptz[], $11::text[], $12::text[], $13::text[], $14::text[]) with ordinality
	as each(tenant, command_id, ordinal, aggregate_type, aggregate_id, type, payload, correlation_id, causation_id, at,
		trace, topic, partition_key, headers, n)
), moved as (
	insert into ibid.aggregate as head (tenant, type, id, version, lane, xid)
	select tenant, aggregate_type, aggregate_id, count(*), ibid.lane_of(tenant, aggregate_type, aggregate_id),
		case when count(topic) > 0 then pg_current_xact_id() end
	from each
	group by tenant, aggregate_type, aggregate_id order by tenant, aggregate_type, aggregate_id
	on conflict (tenant, type, id) do update set version = head.version + excluded.version,
		xid = coalesce(excluded.xid, head.xid),
		before = case when excluded.xid is null then head.before else head.xid end
	returning head.tenant, head.type, head.id, head.version, head.lane, head.before
)
insert into ibid.event (tenant, id, command_id, ordinal, aggregatetype, aggregateid, type, payload, version, key,
	correlation_id, causation_id, partition_key, created_at, traceparent, tracestate, topic,
	headers, lane, follows)
select each.tenant, overlay(each.command_id::text placing lpad(to_hex(each.ordinal), 4, '0') from 33)::uuid,
	each.command_id, each.ordinal, each.aggregate_type, each.aggregate_id, each.type, each.payload,
	moved.version + 1 - row_number() over (partition by each.tenant, each.aggregate_type, each.aggregate_id
		order by each.n desc),
	each.command_id || ':' || each.ordinal, each.correlation_id, each.causation_id, each.partition_key, each.at,
	ibid.traceparent_in(each.trace), ibid.tracestate_in(each.trace), each.topic, each.headers, moved.lane,
	case when each.topic is null then null
		when count(each.topic) over (partition by each.tenant, each.aggregate_type, each.aggregate_id order by each.n) > 1
		then pg_current_xact_id() else moved.before end
from each join moved on moved.tenant = each.tenant and moved.type = each.aggregate_type
	and moved.id = each.aggregate_id
