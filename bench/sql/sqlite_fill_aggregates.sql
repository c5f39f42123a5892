-- sqlite_fill_aggregates: no parameters
insert into ibid_aggregate (tenant, type, id, version)
select 'acme', 'payment', id, 1 from temp.batch
