-- retain_audit: ?1 tenant, ?2 after this id, ?3 up to this one, ?4 now_us, ?5 audit periods by operation (JSON)
delete from ibid_audit
where tenant = ?1 and id > ?2 and id <= ?3 and at_us + (?5 ->> operation) <= ?4
  and not exists (select 1 from ibid_command as c where c.tenant = ?1 and c.id = ibid_audit.command_id)
