-- act_begin: $1 what stands for a command's id, $2 how long to wait for a lock, in milliseconds
-- The transaction of a person's action is no command's; the guard at its commit looks for what is set here.
select set_config('ibid.command_id', $1::text, true), set_config('lock_timeout', $2::text, true)
