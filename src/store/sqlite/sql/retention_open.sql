-- retention_open: no parameters
insert into ibid_retention (one) values (1)
