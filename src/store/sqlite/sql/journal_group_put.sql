-- journal_group_put: ?1 tenant, ?2 id, ?3 source, ?4 command id, ?5 posting date, ?6 description, ?7 time
insert into ibid_journal_group (tenant, id, source, command_id, posting_date, description, at_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
