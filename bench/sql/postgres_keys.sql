-- postgres_keys: $1 how many
-- Keys of completed payments, at random: the next one behind a random text.
select (select c.key from ibid.command as c
	where c.tenant = model.tenant and c.operation = model.operation and c.scope = model.scope
		and c.key >= random_text.text and c.state = 'COMPLETED'
	order by c.key limit 1)
from (select tenant, operation, scope from ibid.command where tenant = 'acme' and operation = 'pay' limit 1)
	as model,
	lateral (select gen_random_uuid()::text as text from generate_series(1, $1::bigint)) as random_text
