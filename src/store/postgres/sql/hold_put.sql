-- hold_put: $1 destination, $2 lane; arrays, an element for each event: $3 tenants, $4 ids, $5 aggregate types,
--   $6 aggregate ids, $7 versions, $8 states, $9 attempts, $10 failures, $11 reasons, $12 whys, $13 next, $14 since,
--   $15 passed, $16 the state in which it was read, or null: it is new
-- Only in the place of what was read: a person may have decided since. A new one may have been cancelled before it was
-- read: by now it is, and nothing stands before it unless it came early. One that goes elsewhere and is passed is gone.
with each as materialized (
	select * from unnest($3::text[], $4::uuid[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::int[],
		$10::text[], $11::text[], $12::text[], $13::timestamptz[], $14::timestamptz[], $15::boolean[], $16::text[])
		as each(tenant, event_id, aggregatetype, aggregateid, version, state, attempts, failure, reason, why, next_at, since,
			passed, was)
), moved as (
	update ibid.delivery_hold as h set state = each.state, attempts = each.attempts, failure = each.failure,
		reason = each.reason, why = each.why, next_at = each.next_at, passed = each.passed
	from each
	where h.destination = $1 and h.tenant = each.tenant and h.event_id = each.event_id and h.state = each.was
		and not (each.state = 'ELSEWHERE' and each.passed)
), gone as (
	delete from ibid.delivery_hold as h using each
	where h.destination = $1 and h.tenant = each.tenant and h.event_id = each.event_id and h.state = each.was
		and each.state = 'ELSEWHERE' and each.passed
)
insert into ibid.delivery_hold as h (destination, lane, tenant, event_id, aggregatetype, aggregateid, version, state,
	attempts, failure, reason, why, next_at, since, passed)
select $1, $2, tenant, event_id, aggregatetype, aggregateid, version, state, attempts, failure, reason, why, next_at, since,
	passed
from each where was is null
on conflict (tenant, event_id, destination) do update set attempts = excluded.attempts, failure = excluded.failure,
	reason = excluded.reason, why = excluded.why, passed = excluded.reason is distinct from 'PREDECESSOR_COMES'
where h.state = 'CANCELLED' and h.reason = 'NOT_READ'
