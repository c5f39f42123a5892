-- claim_find: $1 tenant, $2 operation, $3 scope, $4 key, $5 rows that expired by then give way, or null
-- The whole record; no row when the identity is new. A row found puts its own id in the place of the
-- one that claim_lock set: events of a second run belong to the first command, unless that has expired
-- and the second is a new one. The body comes through a
-- function, so that a new command, which has none, does not pay for opening the table.
select
{command},
	ibid.kept_body(c.tenant, c.id, c.attempts) as body,
	set_config('ibid.command_id', case
		when c.expires_at <= $5 and c.state in ('COMPLETED', 'REJECTED', 'FAILED')
			then current_setting('ibid.command_id')
		else c.id::text end, true)
from ibid.command as c
where c.tenant = $1 and c.operation = $2 and c.scope = $3 and c.key = $4
