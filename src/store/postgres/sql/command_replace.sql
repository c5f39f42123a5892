-- command_replace: $1 tenant, $2 operation, $3 scope, $4 key, $5 id, $6 state, $7 scheme,
--   $8 contract version, $9 fingerprint, $10 linked, $11 status, $12 resource type, $13 resource id,
--   $14 reason, $15 text, $16 audit id, $17 attempts, $18 client, $19 actor, $20 created,
--   $21 finished, $22 expires, $23 lease token or null, $24 lease in microseconds or null,
--   $25 correlation id, $26 causation id, $27 traceparent, $28 tracestate,
--   $29 the state found, $30 the attempts found, $31 the lease token found or null, $32 the id found
-- Compare-and-set on the row that claim found, where a lease is taken over also on its having ended: a
-- worker may renew it without claiming. It fails the transaction when another took its place.
with moved as (
	update ibid.command
	set id = $5, state = $6, scheme = $7, contract_version = $8, fingerprint = $9, linked = $10, status = $11,
		resource_type = $12, resource_id = $13, reason = $14, text = $15, audit_id = $16,
		attempts = $17, client = $18, actor = $19, created_at = $20, finished_at = $21,
		expires_at = $22, lease_token = $23,
		lease_until = clock_timestamp() + $24::bigint * interval '1 microsecond',
		correlation_id = $25, causation_id = $26, traceparent = $27, tracestate = $28
	where tenant = $1 and operation = $2 and scope = $3 and key = $4 and id = $32
		and state = $29 and attempts = $30 and lease_token is not distinct from $31
		and ($6 <> 'IN_PROGRESS' or state <> 'IN_PROGRESS' or lease_until < clock_timestamp())
	returning 1)
select ibid.demand(exists (select from moved), 'IB006', 'another process has written this command')
