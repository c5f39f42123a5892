-- duplicate_put: $1 counts, $2 entries: each a JSON array of objects
-- In the order of the key, so that two processes can't deadlock.
with counted as (
	insert into ibid.duplicate as d (tenant, command_id, first_at, last_at, count, unlisted)
	select tenant, command_id, first_at, last_at, count, unlisted
	from json_to_recordset($1::json) as x(tenant text, command_id uuid, first_at timestamptz,
		last_at timestamptz, count bigint, unlisted bigint)
	order by tenant collate "C", command_id
	on conflict (tenant, command_id) do update set
		first_at = least(d.first_at, excluded.first_at), last_at = greatest(d.last_at, excluded.last_at),
		count = d.count + excluded.count, unlisted = d.unlisted + excluded.unlisted)
insert into ibid.duplicate_seen (tenant, command_id, at, client, actor, decision, fingerprint)
select tenant, command_id, at, client, actor, decision, decode(fingerprint, 'hex')
from json_to_recordset($2::json) as x(tenant text, command_id uuid, at timestamptz, client text,
	actor text, decision text, fingerprint text)
