-- evidence_list
-- In the order in which they were first seen.
select tenant, command_id, digest(fingerprint), client, actor, instant(first_at), instant(last_at), count
from ibid.evidence as v
where tenant = :tenant and command_id = :id
order by v.first_at, v.fingerprint, client, actor
