-- erase_left: ?1 tenant, ?2 after this id, ?3 up to this one, ?4 resource type, ?5 resource id, ?6 actor
-- Of the window, what the erasure is about and has no outcome.
select count(*) from ibid_command
where tenant = ?1 and id > ?2 and id <= ?3 and state not in ('COMPLETED', 'REJECTED', 'FAILED')
  and (?4 is null and ?6 is null or resource_type = ?4 and resource_id = ?5 or actor = ?6)
