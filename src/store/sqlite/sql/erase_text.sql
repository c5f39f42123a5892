-- erase_text: ?1 tenant
update ibid_command set text = null
where tenant = ?1 and id in (select command_id from ibid_erasing) and text is not null
