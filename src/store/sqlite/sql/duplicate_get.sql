-- duplicate_get: ?1 tenant, ?2 command_id
select tenant, command_id, first_us, last_us, count, unlisted
from ibid_duplicate
where tenant = ?1 and command_id = ?2
