-- exception_assign: owner, assignee null: as it is
-- demands one row: the exception is not open
update ibid.exception
set owner = coalesce(:owner, owner), assignee = coalesce(:assignee, assignee)
where tenant = :tenant and id = :id and state = 'OPEN'
