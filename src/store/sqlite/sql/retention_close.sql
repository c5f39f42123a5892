-- retention_close: no parameters
delete from ibid_retention
