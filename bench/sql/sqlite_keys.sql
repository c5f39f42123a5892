-- sqlite_keys: ?1 how many
-- Keys of completed payments, at random: the next one behind a random text.
with recursive random_text (n, text) as (
  select 1, lower(hex(randomblob(8)))
  union all
  select n + 1, lower(hex(randomblob(8))) from random_text where n < ?1
)
select (select c.key from ibid_command as c
  where c.tenant = model.tenant and c.operation = model.operation and c.scope = model.scope
    and c.key >= random_text.text
  order by c.key limit 1)
from (select tenant, operation, scope from ibid_command where tenant = 'acme' and operation = 'pay' limit 1)
  as model cross join random_text
