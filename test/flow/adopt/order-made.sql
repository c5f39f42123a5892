select 200 as status where 1 = 0;
