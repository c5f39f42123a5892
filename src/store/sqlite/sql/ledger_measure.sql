-- ledger_measure: ?1 now, ?2 commands that are counted one by one, at most
-- How the ledger stands, over all tenants, without reading it: what has no outcome is counted along the index of
-- leases. How many commands there are is exact up to ?2, and else guessed from the size of the file, at
-- 430 bytes for each with its audit entry and event.
select
  (select count(*) from ibid_command where state = 'IN_PROGRESS'),
  (select count(*) from ibid_command where state = 'IN_PROGRESS' and lease_until_us < ?1),
  (select count(*) from ibid_command where state = 'UNKNOWN'),
  case
    when few.count < ?2 then few.count
    else max(few.count, (select (p.page_count - f.freelist_count) * s.page_size / 430
      from pragma_page_count p, pragma_freelist_count f, pragma_page_size s))
  end
from (select count(*) as count from (select 1 from ibid_command limit ?2)) few
