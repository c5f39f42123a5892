-- resolve_lock: $1 lock key
-- Waits for whoever holds the identity; a statement of its own, so that the look-up sees its commit.
select pg_advisory_xact_lock($1::bigint)
