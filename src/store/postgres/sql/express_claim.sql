-- express_claim: $1 lock key, $2 new command's id, $3 tenant, $4 operation, $5 scope, $6 key,
--   $7 correlation id or '', $8 causation id or '', $9 declared event types joined by commas, $10 now,
--   $11 how long to wait for row locks, $12 traceparent and, behind a blank, tracestate, or ''
-- Stops the trip unless the identity was free; a notice tells the row that has it.
select ibid_internal.express_claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
