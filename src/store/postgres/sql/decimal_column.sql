-- decimal_column: $1 name of a column
-- A column of that name, in the user's tables, whose type would round a decimal.
select format('%I.%I.%I %s', n.nspname, c.relname, a.attname, format_type(a.atttypid, null))
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where a.attname = $1 and a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'p')
  and n.nspname not in ('ibid', 'pg_catalog', 'information_schema')
  and a.atttypid in ('float4'::regtype, 'float8'::regtype)
order by 1
limit 1
