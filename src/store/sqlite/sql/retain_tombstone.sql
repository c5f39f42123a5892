-- retain_tombstone: ?1 tenant, ?2 after this id, ?3 up to this one, ?4 now_us, ?5 audit periods by
-- operation (JSON)
-- Commands that stay and have something to lose: a text, a body or a payload.
select count(*) from ibid_command as c
where tenant = ?1 and id > ?2 and id <= ?3 and state in ('COMPLETED', 'REJECTED', 'FAILED')
  and expires_us <= ?4 and ifnull(finished_us + (?5 ->> operation) > ?4, 1)
  and (text is not null
    or exists (select 1 from ibid_answer as a where a.tenant = c.tenant and a.command_id = c.id)
    or exists (select 1 from ibid_payload as p where p.tenant = c.tenant and p.command_id = c.id))
