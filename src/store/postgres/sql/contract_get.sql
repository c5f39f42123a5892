-- contract_get: $1 kind, $2 name, $3 version, 0 for the newest
select encode(digest, 'hex'), text, (extract(epoch from at) * 1000000)::bigint, version
from ibid.contract
where kind = $1 and name = $2 and (version = $3 or $3 = 0)
order by version desc
limit 1
