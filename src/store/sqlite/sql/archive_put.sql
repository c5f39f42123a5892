-- archive_put: ?1 at_us, ?2 file, ?3 range from, ?4 range to, ?5 first id, ?6 last id, ?7 events, ?8 deliveries,
-- ?9 bytes, ?10 digest of the file, ?11 digest of its content
insert into ibid_archive (
  at_us, file, range_from, range_to, first_id, last_id, events, deliveries, bytes, sha256, content_sha256)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
