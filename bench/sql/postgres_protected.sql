-- postgres_protected: no parameters
-- Completed payments that have all that belongs to one: the payment's row, an event and an audit entry.
select count(*)
from ibid.command as c
	join payment as p on p.tenant = c.tenant and p.id = c.id
	join ibid.event as e on e.tenant = c.tenant and e.id = overlay(c.id::text placing '0001' from 33)::uuid
	join ibid.audit as a on a.tenant = c.tenant and a.id = c.id
where c.state = 'COMPLETED'
