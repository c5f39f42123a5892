-- schema_exists: no parameters
select to_regclass('ibid.schema_version') is not null
