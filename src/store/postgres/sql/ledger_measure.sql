-- ledger_measure: no parameters
-- How the ledger stands, over all tenants, without reading it: what has no outcome is counted along the index of
-- leases. No limit bounds these counts: with one, the planner may hope to find that many soon and read the table.
-- How many commands there are is exact while they are few, and else scaled from the last vacuum or analyze; before
-- the first one, guessed from the size.
select
	(select count(*) from ibid.command where state = 'IN_PROGRESS'),
	(select count(*) from ibid.command where state = 'IN_PROGRESS' and lease_until < now()),
	(select count(*) from ibid.command where state = 'UNKNOWN'),
	case
		when pg_relation_size(t.oid) <= 8 * 1024 * 1024 then (select count(*) from ibid.command)
		when t.reltuples > 0 and t.relpages > 0 then
			(t.reltuples::float8 / t.relpages * (pg_relation_size(t.oid) / current_setting('block_size')::int))::bigint
		else pg_relation_size(t.oid) / 150
	end
from pg_class as t
where t.oid = 'ibid.command'::regclass
