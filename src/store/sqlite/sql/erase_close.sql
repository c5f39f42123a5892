-- erase_close: no parameters
delete from ibid_erasing
