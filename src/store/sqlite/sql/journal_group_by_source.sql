-- journal_group_by_source: ?1 tenant, ?2 source
select id, posting_date
from ibid_journal_group
where tenant = ?1 and source = ?2
