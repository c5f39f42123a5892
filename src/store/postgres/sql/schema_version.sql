-- schema_version: no parameters
select coalesce(max(version), 0) from ibid.schema_version
