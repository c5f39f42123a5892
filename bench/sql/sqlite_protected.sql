-- sqlite_protected: no parameters
-- Completed payments that have all that belongs to one: the payment's row, an event and an audit entry.
select count(*)
from ibid_command as c
  join payment as p on p.tenant = c.tenant and p.id = c.id
  join ibid_event as e on e.tenant = c.tenant and e.id = substr(c.id, 1, 32) || '0001'
  join ibid_audit as a on a.tenant = c.tenant and a.id = c.id
where c.state = 'COMPLETED'
