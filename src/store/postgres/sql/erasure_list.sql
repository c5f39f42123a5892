-- erasure_list: $1 tenant or null, $2 rows at most
-- The newest first.
select tenant, id, by, reason, selection, (extract(epoch from at) * 1000000)::bigint,
	(extract(epoch from finished_at) * 1000000)::bigint, commands, payloads, bodies, texts, events, names, exceptions
from ibid.erasure where $1::text is null or tenant = $1
order by id desc limit $2
