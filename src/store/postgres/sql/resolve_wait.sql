-- resolve_wait: $1 how long to wait for the lock
-- Column 1: a standby can't be believed, because it may lag behind the commit in question (I7).
select pg_is_in_recovery(), set_config('lock_timeout', $1::text, true)
