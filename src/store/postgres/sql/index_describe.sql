-- index_describe: $1 name
-- The index of that name in the user's schemas, the one on the search path first. Its expressions
-- and columns are listed as the server writes them.
select t.relname,
	(select string_agg(pg_get_indexdef(i.indexrelid, k, true), ', ' order by k)
		from generate_series(1, i.indnkeyatts) as k),
	i.indisunique or i.indisexclusion, i.indisvalid and i.indislive, i.indpred is not null
from pg_catalog.pg_class as c
join pg_catalog.pg_index as i on i.indexrelid = c.oid
join pg_catalog.pg_class as t on t.oid = i.indrelid
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.relname = $1 and n.nspname not in ('ibid', 'pg_catalog', 'information_schema', 'pg_toast')
	and n.nspname not like 'pg\_temp\_%'
order by pg_table_is_visible(c.oid) desc, n.nspname
limit 1
