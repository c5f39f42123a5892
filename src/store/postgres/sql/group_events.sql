-- group_events: arrays, an element for each event: $1 tenants, $2 command ids, $3 ordinals, $4 aggregate types,
--   $5 aggregate ids, $6 types, $7 payloads, $8 correlation ids, $9 causation ids, $10 times, $11 traces as in group_turn
-- append_event for many, without topics, versions and keys of their own: each head is moved once, by as many as its aggregate has
-- here, and in one order.
with each as (
	select * from unnest($1::text[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
		$9::text[], $10::timestamptz[], $11::text[]) with ordinality
	as each(tenant, command_id, ordinal, aggregate_type, aggregate_id, type, payload, correlation_id, causation_id, at,
		trace, n)
), moved as (
	insert into ibid.aggregate as head (tenant, type, id, version, lane)
	select tenant, aggregate_type, aggregate_id, count(*), ibid.lane_of(tenant, aggregate_type, aggregate_id) from each
	group by tenant, aggregate_type, aggregate_id order by tenant, aggregate_type, aggregate_id
	on conflict (tenant, type, id) do update set version = head.version + excluded.version
	returning head.tenant, head.type, head.id, head.version, head.lane
)
insert into ibid.event (tenant, id, command_id, ordinal, aggregatetype, aggregateid, type, payload, version, key,
	correlation_id, causation_id, partition_key, created_at, traceparent, tracestate, lane)
select each.tenant, overlay(each.command_id::text placing lpad(to_hex(each.ordinal), 4, '0') from 33)::uuid,
	each.command_id, each.ordinal, each.aggregate_type, each.aggregate_id, each.type, each.payload,
	moved.version + 1 - row_number() over (partition by each.tenant, each.aggregate_type, each.aggregate_id
		order by each.n desc),
	each.command_id || ':' || each.ordinal, each.correlation_id, each.causation_id, each.aggregate_id, each.at,
	ibid.traceparent_in(each.trace), ibid.tracestate_in(each.trace), moved.lane
from each join moved on moved.tenant = each.tenant and moved.type = each.aggregate_type
	and moved.id = each.aggregate_id
