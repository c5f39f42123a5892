-- erase_select: ?1 tenant, ?2 after this id, ?3 up to this one, ?4 resource type, ?5 resource id, ?6 actor
-- Of the window, what the erasure is about and has an outcome; all of it without type and actor.
insert into ibid_erasing (command_id)
select c.id from ibid_command as c
left join ibid_audit as a on a.tenant = c.tenant and a.id = c.id
where c.tenant = ?1 and c.id > ?2 and c.id <= ?3 and c.state in ('COMPLETED', 'REJECTED', 'FAILED')
  and (?4 is null and ?6 is null
    or c.resource_type = ?4 and c.resource_id = ?5 or a.resource_type = ?4 and a.resource_id = ?5
    or c.actor = ?6 or a.actor = ?6)
