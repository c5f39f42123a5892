-- pause_put: $1 tenant, $2 kind, $3 name, $4 source, $5 by, $6 reason, $7 since, $8 tenant of its exception or null
-- It fails the transaction when it is paused already.
with put as (
	insert into ibid.pause (tenant, kind, name, source, paused_by, reason, since, item_tenant)
	values ($1, $2, $3, $4, $5, $6, $7, $8)
	on conflict (tenant, kind, name) do nothing
	returning 1)
select ibid.demand(exists (select from put), 'IB006', 'it is paused already')
