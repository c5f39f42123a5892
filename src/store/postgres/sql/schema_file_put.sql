-- schema_file_put: $1 name, $2 digest, $3 at
insert into ibid.schema_file (name, digest, at) values ($1, $2, $3)
