-- guard: $1 the command's id
-- The setting is the transaction's own: gone when a handler ended it, also by COMMIT AND CHAIN.
select ibid.demand(current_setting('ibid.command_id', true) = $1::text, 'IB002',
	'the handler ended the transaction')
