-- adopt_place: which database of which running server this is, as one number; not zero.
select pg_catalog.hashtextextended(
	d.oid || ':' || extract(epoch from pg_catalog.pg_postmaster_start_time()), 0) | 1
from pg_catalog.pg_database as d
where d.datname = pg_catalog.current_database()
