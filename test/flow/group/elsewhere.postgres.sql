set local search_path = elsewhere, public;
update hot set n = n + :amount where id = :row;
select 200 as status;
