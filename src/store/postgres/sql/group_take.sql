-- group_take: $1 lock keys as bigint[], $2 how long scripts wait for rows in ms as int[] of one
-- group_lock for a group whose scripts travel in the same trip: fails, and keeps them from running, unless all locks were
-- gained. Whether an identity has a row is not looked up: command_pkey tells when the rows are written.
select ibid.demand(bool_and(pg_try_advisory_xact_lock(each.key)), 'IB009', 'ibid: a key is in use'),
	set_config('ibid.command_id', 'group', true),
	set_config('lock_timeout', ($2::int[])[1]::text, true),
	case when current_setting('synchronous_commit') = 'off'
		then set_config('synchronous_commit', 'on', true) end
from unnest($1::bigint[]) as each(key)
