update hot set n = n + :amount where id = :row;
select ibid_reject('NO', 0, 'not a status');
select 200 as status;
