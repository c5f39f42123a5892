-- event_append: $1 tenant, $2 id, $3 command id, $4 ordinal, $5 aggregate type, $6 aggregate id,
--   $7 type, $8 payload, $9 version or null for the next, $10 key or null, $11 correlation id,
--   $12 causation id, $13 at
select ibid.append_event($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
