-- open_command_put: ?1 tenant, ?2 command_id
-- From here on the commit is refused.
insert into ibid_open_command (tenant, command_id)
values (?1, ?2)
