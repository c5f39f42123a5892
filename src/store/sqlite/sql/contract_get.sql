-- contract_get: ?1 kind, ?2 name, ?3 version
select kind, name, version, digest, text, at_us
from ibid_contract
where kind = ?1 and name = ?2 and version = ?3
