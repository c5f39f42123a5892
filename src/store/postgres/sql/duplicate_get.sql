-- duplicate_get: $1 tenant, $2 command id
select tenant, command_id, (extract(epoch from first_at) * 1000000)::bigint,
	(extract(epoch from last_at) * 1000000)::bigint, count, unlisted
from ibid.duplicate
where tenant = $1 and command_id = $2
