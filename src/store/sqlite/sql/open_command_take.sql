-- open_command_take: ?1 tenant, ?2 command_id
-- The commit is not refused any more, for this one.
delete from ibid_open_command where tenant = ?1 and command_id = ?2
