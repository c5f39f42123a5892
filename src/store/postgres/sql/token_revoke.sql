-- token_revoke: $1 id, $2 at, $3 by
-- One that is revoked stays as it is. No row when there is no such token.
update ibid.token
set revoked_at = coalesce(revoked_at, $2), revoked_by = coalesce(revoked_by, $3)
where id = $1
returning 1
