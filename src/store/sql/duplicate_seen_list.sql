-- duplicate_seen_list
-- The newest first.
select tenant, command_id, instant(at), client, actor, decision, digest(fingerprint)
from ibid.duplicate_seen
where tenant = :tenant and command_id = :id
order by n desc
limit :limit
