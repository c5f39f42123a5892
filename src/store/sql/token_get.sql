-- token_get
select
{token}
from ibid.token as t
where t.id = :id
