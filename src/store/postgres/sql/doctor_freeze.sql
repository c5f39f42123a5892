-- doctor_freeze: $1 percent
-- What holds transaction ids older than that share of the age at which autovacuum must freeze them:
-- ibid's tables, and the database as a whole. A table may have a lower limit of its own.
select what, age
from (
	select format('table %I.%I', n.nspname, c.relname), age(c.relfrozenxid), least(
		(select o.option_value::int from pg_options_to_table(c.reloptions) as o
			where o.option_name = 'autovacuum_freeze_max_age'),
		current_setting('autovacuum_freeze_max_age')::int)
	from pg_catalog.pg_class as c
	join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
	where n.nspname = 'ibid' and c.relkind = 'r'
	union all
	select format('database %I', d.datname), age(d.datfrozenxid),
		current_setting('autovacuum_freeze_max_age')::int
	from pg_catalog.pg_database as d
	where d.datname = current_database()
	) as held (what, age, most)
where age > most::bigint * $1::int / 100
order by age desc, what
