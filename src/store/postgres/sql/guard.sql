-- guard: $1 the command's id
-- The setting is the transaction's own: gone when a handler ended it, also by COMMIT AND CHAIN. And
-- whatever the handler did to it, the commit is durable before it is reported (I10).
select ibid.demand(current_setting('ibid.command_id', true) = $1::text, 'IB002',
	'the handler ended the transaction'),
	case when current_setting('synchronous_commit') = 'off'
		then set_config('synchronous_commit', 'on', true) end
