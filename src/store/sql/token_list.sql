-- token_list: tenant null: of all; after null: from the newest
-- The newest first; ids tell nothing about age, but order those of one instant.
select
{token}
from ibid.token as t
where (:tenant::text is null or t.tenant = :tenant)
	and (:after::text is null
		or (t.created_at, t.id) < (select a.created_at, a.id from ibid.token as a where a.id = :after))
order by t.created_at desc, t.id desc
limit :limit
