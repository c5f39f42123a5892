-- contract_get: version 0: the newest
select kind, name, version, digest(digest), text, instant(at)
from ibid.contract
where kind = :kind and name = :name and (version = :version or :version = 0)
order by version desc
limit 1
