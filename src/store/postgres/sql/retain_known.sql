-- retain_known: $1 audit periods by operation, as JSON
-- Is there a period for every operation that was ever used?
select not exists (select from ibid.contract where kind = 'command' and not $1::jsonb ? name)
