update elsewhere_hot set n = n + :amount where id = :row;
select 200 as status;
