-- contract_get: $1 kind, $2 name, $3 version
select encode(digest, 'hex'), text, (extract(epoch from at) * 1000000)::bigint
from ibid.contract
where kind = $1 and name = $2 and version = $3
