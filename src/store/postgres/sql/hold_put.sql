-- hold_put: $1 destination, $2 lane; arrays, an element for each event: $3 tenants, $4 ids, $5 aggregate types,
--   $6 aggregate ids, $7 versions, $8 states, $9 attempts, $10 failures, $11 reasons, $12 whys, $13 next, $14 since
insert into ibid.delivery_hold as h (destination, lane, tenant, event_id, aggregatetype, aggregateid, version, state,
	attempts, failure, reason, why, next_at, since)
select $1, $2, each.* from unnest($3::text[], $4::uuid[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::int[],
	$10::text[], $11::text[], $12::text[], $13::timestamptz[], $14::timestamptz[])
	as each(tenant, event_id, aggregatetype, aggregateid, version, state, attempts, failure, reason, why, next_at, since)
on conflict (destination, tenant, event_id) do update set state = excluded.state, attempts = excluded.attempts,
	failure = excluded.failure, reason = excluded.reason, why = excluded.why, next_at = excluded.next_at
