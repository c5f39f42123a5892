-- journal_line_put: ?1 tenant, ?2 group id, ?3 line, ?4 account, ?5 direction, ?6 amount, ?7 currency
insert into ibid_journal_line (tenant, group_id, line, account, direction, amount, currency)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
