	t.id, t.tenant, t.client, t.roles, digest(t.digest), instant(t.created_at), t.created_by, instant(t.expires_at),
	instant(t.revoked_at), t.revoked_by
