-- duplicate_seen_list: ?1 tenant, ?2 command_id, ?3 limit
-- The newest first.
select tenant, command_id, at_us, client, actor, decision, fingerprint
from ibid_duplicate_seen
where tenant = ?1 and command_id = ?2
order by n desc
limit ?3
