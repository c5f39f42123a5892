-- duplicate_get
select tenant, command_id, instant(first_at), instant(last_at), count, unlisted
from ibid.duplicate
where tenant = :tenant and command_id = :id
