-- journal_line_list: ?1 tenant, ?2 group id
select account, direction, amount, currency
from ibid_journal_line
where tenant = ?1 and group_id = ?2
order by line
