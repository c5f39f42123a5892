-- hold_end: $1 destination; arrays, an element for each event: $2 tenants, $3 ids
-- What a person decided stays, also where it arrived all the same.
delete from ibid.delivery_hold as h
using unnest($2::text[], $3::uuid[]) as each(tenant, event_id)
where h.destination = $1 and h.tenant = each.tenant and h.event_id = each.event_id
	and h.state not in ('SKIPPED', 'CANCELLED')
