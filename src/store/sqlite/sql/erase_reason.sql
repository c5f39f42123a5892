-- erase_reason: ?1 tenant
-- Before their bodies go: what a duplicate is told in their place.
update ibid_command set reason = 'ERASED'
where tenant = ?1 and id in (select command_id from ibid_erasing) and state = 'COMPLETED'
  and exists (select 1 from ibid_answer as a where a.tenant = ?1 and a.command_id = ibid_command.id)
