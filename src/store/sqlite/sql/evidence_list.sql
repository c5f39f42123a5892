-- evidence_list: ?1 tenant, ?2 command_id
select tenant, command_id, fingerprint, client, actor, first_us, last_us, count
from ibid_evidence
where tenant = ?1 and command_id = ?2
order by first_us, fingerprint, client, actor
