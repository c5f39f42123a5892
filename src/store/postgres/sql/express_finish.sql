-- express_finish: the script's last statement stands in the place of :answer, its columns (or null) in
-- those of :status, :resource_type and :resource_id; behind its parameters come
--   $1 tenant, $2 operation, $3 scope, $4 key, $5 id, $6 scheme, $7 contract version, $8 fingerprint,
--   $9 client, $10 actor, $11 now, $12 expires, $13 keep the status, $14 keep the resource, $15 fact,
--   $16 correlation id, $17 causation id, $18 trace as in express_claim
-- Answers, and writes the command's row and its audit entry. Without a row the status is null, which is
-- refused; with two rows the second can't be written: then the long way finds out what is wrong.
select ibid_internal.express_finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
	$18, :status, :resource_type::text, :resource_id::text), answer.*
from (select) as one left join (
:answer
) as answer on true
