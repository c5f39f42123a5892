-- exception_get
select
{exception}, e.service_answer
from ibid.exception as e
where e.tenant = :tenant and e.id = :id
