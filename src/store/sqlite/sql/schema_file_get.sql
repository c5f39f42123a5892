-- schema_file_get: ?1 name
-- The digest of a user's schema file that ran; no row when it did not.
select digest from ibid_schema_file where name = ?1
