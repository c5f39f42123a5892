-- group_lock: $1 lock keys as bigint[], $2 how long scripts wait for rows in ms as int[] of one
-- Takes the identities without waiting, as claim_lock takes one: column 1 is whether that lock was
-- gained, in the order of the keys.
select pg_try_advisory_xact_lock(each.key), settings.*
from (
	select set_config('ibid.command_id', 'group', true),
		set_config('lock_timeout', ($2::int[])[1]::text, true),
		case when current_setting('synchronous_commit') = 'off'
			then set_config('synchronous_commit', 'on', true) end
	offset 0
) as settings, unnest($1::bigint[]) with ordinality as each(key, n)
order by each.n
