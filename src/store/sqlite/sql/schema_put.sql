-- schema_put: ?1 version, ?2 name, ?3 at_us
insert into ibid_schema (version, name, at_us) values (?1, ?2, ?3)
