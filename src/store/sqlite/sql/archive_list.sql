-- archive_list: ?1 at most
-- Newest first.
select at_us, file, range_from, range_to, first_id, last_id, events, deliveries, bytes, sha256, content_sha256
from ibid_archive
order by id desc
limit ?1
