-- command_get_by_id
-- The collation chooses the index.
select
{command}, a.body
from ibid.command as c
left join ibid.answer as a on a.tenant = c.tenant and a.command_id = c.id
	and a.attempts = c.attempts -- sqlite:
where c.tenant collate "POSIX" = :tenant and c.id = :id
