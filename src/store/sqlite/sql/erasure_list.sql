-- erasure_list: ?1 tenant or null, ?2 rows at most
-- The newest first.
select tenant, id, by, reason, selection, at_us, finished_us, commands, payloads, bodies, texts, events, names,
  exceptions
from ibid_erasure where ?1 is null or tenant = ?1
order by id desc limit ?2
