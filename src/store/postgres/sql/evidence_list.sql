-- evidence_list: $1 tenant, $2 command id
-- In the order in which they were first seen.
select tenant, command_id, encode(fingerprint, 'hex'), client, actor,
	(extract(epoch from first_at) * 1000000)::bigint,
	(extract(epoch from last_at) * 1000000)::bigint, count
from ibid.evidence
where tenant = $1 and command_id = $2
order by first_at, fingerprint, client, actor
