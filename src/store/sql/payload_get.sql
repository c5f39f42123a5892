-- payload_get
select tenant, command_id, payload
from ibid.payload
where tenant = :tenant and command_id = :id
