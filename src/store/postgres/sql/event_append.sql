-- event_append: $1 tenant, $2 command id, $3 ordinal, $4 aggregate type, $5 aggregate id, $6 type,
--   $7 payload, $8 version or null for the next, $9 key or null, $10 correlation id, $11 causation id,
--   $12 at, $13 traceparent, $14 tracestate, $15 topic or null, $16 partition key or null for the aggregate id,
--   $17 headers or null for none
select ibid.append_event($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
