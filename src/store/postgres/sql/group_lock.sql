-- group_lock: $1 lock keys as bigint[]
-- Takes the identities without waiting, as claim_lock takes one: column 1 is whether that lock was
-- gained, in the order of the keys. Scripts wait for rows less long than the server takes to look for a
-- deadlock.
select pg_try_advisory_xact_lock(each.key), settings.*
from (
	select set_config('ibid.command_id', 'group', true),
		set_config('lock_timeout', '100ms', true),
		case when current_setting('synchronous_commit') = 'off'
			then set_config('synchronous_commit', 'on', true) end
	offset 0
) as settings, unnest($1::bigint[]) with ordinality as each(key, n)
order by each.n
