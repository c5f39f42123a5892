-- retain_evidence: ?1 tenant, ?2 after this id, ?3 up to this one, ?4 now_us, ?5 audit periods by operation (JSON)
delete from ibid_evidence where tenant = ?1 and command_id in (
  select id from ibid_command
  where tenant = ?1 and id > ?2 and id <= ?3 and state in ('COMPLETED', 'REJECTED', 'FAILED')
    and expires_us <= ?4 and finished_us + (?5 ->> operation) <= ?4)
