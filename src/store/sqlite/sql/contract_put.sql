-- contract_put: ?1 kind, ?2 name, ?3 version, ?4 digest, ?5 text, ?6 at_us
-- Changes nothing when the version is there: the caller then compares digests.
insert into ibid_contract (kind, name, version, digest, text, at_us)
values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict do nothing
