-- erase_count: ?1 tenant, ?2 actor
-- The selected commands that have something to lose.
select count(*) from ibid_erasing as s join ibid_command as c on c.tenant = ?1 and c.id = s.command_id
where c.text is not null or ?2 is not null
  or exists (select 1 from ibid_payload as p where p.tenant = ?1 and p.command_id = c.id)
  or exists (select 1 from ibid_answer as a where a.tenant = ?1 and a.command_id = c.id)
  or exists (select 1 from ibid_evidence as e where e.tenant = ?1 and e.command_id = c.id
    and (e.client not in ('', 'erased') or e.actor not in ('', 'erased')))
  or exists (select 1 from ibid_duplicate_seen as d where d.tenant = ?1 and d.command_id = c.id
    and (d.client not in ('', 'erased') or d.actor not in ('', 'erased')))
  or exists (select 1 from ibid_event as e where e.tenant = ?1 and e.command_id = c.id
    and e.id between substr(c.id, 1, 32) || '0000' and substr(c.id, 1, 32) || 'ffff'
    and e.payload <> '{"erased":true}')
  or exists (select 1 from ibid_exception as x where x.tenant = ?1 and x.subject_type = 'command'
    and x.subject_id = c.id and (x.detail is not null or x.note is not null))
