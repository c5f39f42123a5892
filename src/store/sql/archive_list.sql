-- archive_list
-- The newest first.
select instant(at), file, range_from, range_to, first_id, last_id, events, deliveries, bytes, sha256, content_sha256
from ibid.archive
order by id desc
limit :limit
