-- resolve_lock: $1 lock key
-- Waits for whoever holds the identity, or the row; a statement of its own, so that what looks next
-- sees its commit.
select pg_advisory_xact_lock($1::bigint)
