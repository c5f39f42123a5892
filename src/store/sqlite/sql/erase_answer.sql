-- erase_answer: ?1 tenant
delete from ibid_answer where tenant = ?1 and command_id in (select command_id from ibid_erasing)
