-- erase_commands: $1 erasure, $2 tenant, $3 after this id, $4 the only command or null, $5 resource type,
--   $6 resource id, $7 actor, $8 rows at most, $9 by, $10 reason, $11 selection, $12 now
select at_id, done, commands, payloads, bodies, texts, events, names, exceptions, left_alone
from ibid_internal.erase_commands($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
