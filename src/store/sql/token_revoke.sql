-- token_revoke
-- One that is revoked stays as it is.
update ibid.token
set revoked_by = coalesce(revoked_by, :revoked_by),
	revoked_at = coalesce(revoked_at, :revoked_at) -- sqlite: revoked_us = iif(revoked_us = 0, :revoked_at, revoked_us)
where id = :id
