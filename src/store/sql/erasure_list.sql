-- erasure_list: tenant null: of all
-- The newest first.
select tenant, id, by, reason, selection, instant(at), instant(finished_at), commands, payloads, bodies, texts, events, names,
	exceptions
from ibid.erasure
where :tenant::text is null or tenant = :tenant
order by id desc
limit :limit
