-- erase_window: ?1 tenant, ?2 after this id, ?3 rows at most
-- The last id of the next step; null when there is none.
select max(id) from (
  select id from ibid_command where tenant = ?1 and id > ?2 order by id limit ?3)
