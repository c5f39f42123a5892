-- aggregate_next: ?1 tenant, ?2 aggregate type, ?3 aggregate id, ?4 lane, if it is new
-- Moves the head by one and returns it. Whoever asked for another version rolls back: versions are
-- contiguous (I5).
insert into ibid_aggregate (tenant, type, id, version, lane)
values (?1, ?2, ?3, 1, ?4)
on conflict do update set version = version + 1
returning version, lane
