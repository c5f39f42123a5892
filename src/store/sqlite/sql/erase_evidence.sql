-- erase_evidence: ?1 tenant, ?2 after this id, ?3 up to this one, ?4 actor
delete from ibid_evidence
where tenant = ?1 and command_id > ?2 and command_id <= ?3
  and (command_id in (select command_id from ibid_erasing) or actor = ?4)
  and (client not in ('', 'erased') or actor not in ('', 'erased'))
