-- open_command_get: ?1 tenant, ?2 command_id
-- 1 when the command is open in this transaction.
select count(*) from ibid_open_command where tenant = ?1 and command_id = ?2
