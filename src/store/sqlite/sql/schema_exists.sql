-- schema_exists: one row, 1 when the file holds any schema of ibid.
select count(*) from sqlite_schema where type = 'table' and name = 'ibid_schema'
