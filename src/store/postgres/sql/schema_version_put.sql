-- schema_version_put: $1 version, $2 name
insert into ibid.schema_version (version, name) values ($1, $2)
