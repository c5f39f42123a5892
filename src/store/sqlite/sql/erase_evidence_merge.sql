-- erase_evidence_merge: ?1 tenant, ?2 after this id, ?3 up to this one, ?4 actor
-- The senders' names of conflicts: rows that differed in nothing else become one. Before erase_evidence.
insert into ibid_evidence (tenant, command_id, fingerprint, client, actor, first_us, last_us, count)
select tenant, command_id, fingerprint, iif(client = '', '', 'erased'), iif(actor = '', '', 'erased'),
  min(first_us), max(last_us), sum(count)
from ibid_evidence
where tenant = ?1 and command_id > ?2 and command_id <= ?3
  and (command_id in (select command_id from ibid_erasing) or actor = ?4)
  and (client not in ('', 'erased') or actor not in ('', 'erased'))
group by 1, 2, 3, 4, 5
on conflict do update set first_us = min(first_us, excluded.first_us),
  last_us = max(last_us, excluded.last_us), count = count + excluded.count
