-- archive_list: $1 at most
-- Newest first.
select (extract(epoch from at) * 1000000)::bigint, file, range_from, range_to, first_id, last_id, events, deliveries, bytes,
	sha256, content_sha256
from ibid.archive
order by id desc
limit $1
