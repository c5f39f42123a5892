-- aggregate_next: ?1 tenant, ?2 aggregate type, ?3 aggregate id
-- Moves the head by one and returns it. Whoever asked for another version rolls back: versions are
-- contiguous (I5).
insert into ibid_aggregate (tenant, type, id, version)
values (?1, ?2, ?3, 1)
on conflict do update set version = version + 1
returning version
