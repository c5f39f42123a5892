-- group_turn: $1 command id, $2 tenant, $3 correlation id or '', $4 causation id or '',
--   $5 declared event types joined by commas, $6 now, $7 whose turn it was, or 'group',
--   $8 traceparent and, behind a blank, tracestate, or '', $9 '0', or '' where events are only told and emit must fail
-- Tells emit that the transaction goes on for this command, unless the one before has ended it. The trace of
-- the one before ends with its turn.
select ibid.demand(current_setting('ibid.command_id', true) = $7::text, 'IB002',
		'the handler ended the transaction'),
	set_config('ibid.command_id', $1::text, true),
	set_config('ibid.tenant', $2::text, true),
	set_config('ibid.correlation_id', $3::text, true),
	set_config('ibid.causation_id', $4::text, true),
	set_config('ibid.emits', $5::text, true),
	set_config('ibid.now', $6::text, true),
	set_config('ibid.ordinal', $9::text, true),
	case when $8::text <> coalesce(current_setting('ibid.trace', true), '')
		then set_config('ibid.trace', $8::text, true) end
