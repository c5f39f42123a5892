-- event_list_command: $1 tenant, $2 command id, $3 limit
-- In the order in which the command emitted them. The collation chooses the index: see migration 001.
select
	id, command_id, tenant, aggregatetype, aggregateid, type, payload, version, key, ordinal,
	correlation_id, causation_id, (extract(epoch from created_at) * 1000000)::bigint
from ibid.event
where tenant collate "POSIX" = $1 and command_id = $2
order by ordinal, id
limit $3
