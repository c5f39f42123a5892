-- api_whole: $1 to $6 as api_begin; $7 payer, $8 payee, $9 amount, $10 currency, $11 event's payload
-- The whole command as one statement, which commits by itself. Each step feeds on the one before it, so that
-- they run in this order, and not at all unless the decision is to execute.
with begun as materialized (
	select decision, command_id
	from ibid.command_begin(tenant => $1, operation => $2, key => $3, payload => $4, client => $5, actor => $6)
), paid as (
	insert into payment (tenant, id, payer, payee, amount, currency)
	select $1, command_id, $7, $8, $9, $10 from begun where decision = 'execute'
	returning id
), emitted as materialized (
	select id, ibid.emit('payment', id::text, 'PaymentCreated', $11::text) as event_id from paid
), completed as materialized (
	select ibid.command_complete(id, status => 201, resource_type => 'payment', resource_id => id::text)
	from emitted where event_id is not null
)
select decision, command_id from begun left join (select from completed) as done on true
