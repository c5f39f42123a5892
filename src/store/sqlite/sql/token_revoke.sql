-- token_revoke: ?1 id, ?2 at, ?3 by
-- One that is revoked stays as it is. No row when there is no such token.
update ibid_token
set revoked_us = iif(revoked_us = 0, ?2, revoked_us), revoked_by = coalesce(revoked_by, ?3)
where id = ?1
