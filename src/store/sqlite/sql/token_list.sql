-- token_list: ?1 tenant or null, ?2 older than the token of this id or null, ?3 at most
-- The newest first; ids tell nothing about age, but order those of one instant.
select id, tenant, client, roles, digest, created_us, created_by, expires_us, revoked_us, revoked_by
from ibid_token t
where (?1 is null or t.tenant = ?1)
  and (?2 is null or (t.created_us, t.id) < (select a.created_us, a.id from ibid_token a where a.id = ?2))
order by t.created_us desc, t.id desc
limit ?3
