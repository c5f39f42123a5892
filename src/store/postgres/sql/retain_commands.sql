-- retain_commands: $1 tenant ('': before the first), $2 id, $3 older than this id, $4 now, $5 audit periods
--   in microseconds by operation, as JSON, $6 rows at most
select at_tenant, at_id, emptied, deleted, answers, evidence, duplicates, payloads
from ibid_internal.retain_commands($1, $2, $3, $4, $5::jsonb, $6)
