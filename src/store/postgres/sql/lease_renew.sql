-- lease_renew: $1 tenant, $2 id, $3 token, $4 lease in microseconds
-- No row when the token is no longer the one that holds the command (I6). The collation chooses the
-- index: see 001_baseline.sql.
update ibid.command
set lease_until = clock_timestamp() + $4::bigint * interval '1 microsecond'
where tenant collate "POSIX" = $1 and id = $2 and state = 'IN_PROGRESS' and lease_token = $3
returning 1
