-- claim_lock: $1 lock key, $2 command id, $3 tenant, $4 correlation id or '', $5 causation id or '',
--   $6 declared event types joined by commas, $7 now, $8 how long to wait for row locks,
--   $9 traceparent and, behind a blank, tracestate, or ''
-- Takes the identity without waiting, and tells emit what it runs for: all of it ends with the
-- transaction. Column 1 is whether the lock was gained. synchronous_commit makes the commit
-- durable before it is reported (I10), whatever the database's or the role's default.
select set_config('ibid.locked', pg_try_advisory_xact_lock($1::bigint)::text, true) = 'true',
	set_config('ibid.command_id', $2::text, true),
	set_config('ibid.tenant', $3::text, true),
	set_config('ibid.correlation_id', $4::text, true),
	set_config('ibid.causation_id', $5::text, true),
	set_config('ibid.emits', $6::text, true),
	set_config('ibid.now', $7::text, true),
	set_config('ibid.ordinal', '0', true),
	set_config('lock_timeout', $8::text, true),
	case when current_setting('synchronous_commit') = 'off'
		then set_config('synchronous_commit', 'on', true) end,
	case when $9::text <> '' then set_config('ibid.trace', $9::text, true) end
