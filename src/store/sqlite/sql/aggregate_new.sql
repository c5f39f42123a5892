-- aggregate_new: ?1 tenant, ?2 aggregate type, ?3 aggregate id, ?4 lane
-- The head of a new aggregate, at version 1; no row where there is one already. Most aggregates are new, and `returning`
-- would cost more than the row: SQLite builds a table in memory for it.
insert into ibid_aggregate (tenant, type, id, version, lane)
values (?1, ?2, ?3, 1, ?4)
on conflict do nothing
