-- duplicate_seen_list: $1 tenant, $2 command id, $3 limit
-- The newest first.
select tenant, command_id, (extract(epoch from at) * 1000000)::bigint, client, actor, decision,
	encode(fingerprint, 'hex')
from ibid.duplicate_seen
where tenant = $1 and command_id = $2
order by n desc
limit $3
