-- retain_payload: ?1 tenant, ?2 after this id, ?3 up to this one, ?4 now_us
delete from ibid_payload where tenant = ?1 and command_id in (
  select id from ibid_command
  where tenant = ?1 and id > ?2 and id <= ?3 and state in ('COMPLETED', 'REJECTED', 'FAILED')
    and expires_us <= ?4)
