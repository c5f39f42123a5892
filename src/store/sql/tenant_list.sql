-- tenant_list
-- The tenants are walked through the index; the commands of each are counted.
with recursive t (tenant) as (select min(tenant) from ibid.command union all
	select (select min(c.tenant) from ibid.command as c where c.tenant > t.tenant) from t where t.tenant is not null)
select t.tenant, (select count(*) from ibid.command as c where c.tenant = t.tenant) as commands, (select count(*)
	from ibid.exception as e -- sqlite: from ibid_exception as e indexed by ibid_exception_open
	where e.tenant = t.tenant and e.state = 'OPEN') as open_exceptions
from t where t.tenant is not null order by t.tenant
