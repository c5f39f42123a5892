update hot set n = n + :amount where id = :row;
select decision from ibid.command_begin(:tenant, 'add', 'of ' || :key, '{"lane":"l","row":1,"amount":1}', :client);
select 200 as status;
