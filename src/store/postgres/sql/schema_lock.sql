-- schema_lock: no parameters
-- One process changes the schema of a database, the others wait, however long it takes. The key is
-- 'ibid' in ASCII twice; commands are locked under the other, one-argument, kind of key or by chance
-- under the same number, which costs only a wait.
select set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true),
	pg_advisory_xact_lock(1768057188, 1768057188)
