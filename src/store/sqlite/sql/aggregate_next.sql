-- aggregate_next: ?1 tenant, ?2 aggregate type, ?3 aggregate id
-- Moves the head by one and returns it. Whoever asked for another version rolls back: versions are
-- contiguous (I5).
update ibid_aggregate set version = version + 1
where tenant = ?1 and type = ?2 and id = ?3
returning version, lane
