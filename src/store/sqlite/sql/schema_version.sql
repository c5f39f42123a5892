-- schema_version: one row, the newest migration that ran; 0 when none.
select coalesce(max(version), 0) from ibid_schema
