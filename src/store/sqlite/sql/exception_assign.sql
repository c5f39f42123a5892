-- exception_assign: ?1 tenant, ?2 id, ?3 owner or null, ?4 assignee or null
-- Null leaves it as it is.
update ibid_exception
set owner = coalesce(?3, owner), assignee = coalesce(?4, assignee)
where tenant = ?1 and id = ?2 and state = 'OPEN'
