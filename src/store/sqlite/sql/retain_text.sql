-- retain_text: ?1 tenant, ?2 after this id, ?3 up to this one, ?4 now_us
update ibid_command set text = null
where tenant = ?1 and id > ?2 and id <= ?3 and state in ('COMPLETED', 'REJECTED', 'FAILED')
  and expires_us <= ?4 and text is not null
