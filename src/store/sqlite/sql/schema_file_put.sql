-- schema_file_put: ?1 name, ?2 digest, ?3 at_us
insert into ibid_schema_file (name, digest, at_us) values (?1, ?2, ?3)
