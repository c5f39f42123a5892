update hot set n = n + :amount where id = :row;
do $$ begin commit; end $$;
select 200 as status;
