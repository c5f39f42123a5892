-- command_get
select
{command}, a.body
from ibid.command as c
left join ibid.answer as a on a.tenant = c.tenant and a.command_id = c.id
	and a.attempts = c.attempts -- sqlite:
where c.tenant = :tenant and c.operation = :operation and c.scope = :scope and c.key = :key
