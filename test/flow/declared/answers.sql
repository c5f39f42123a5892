insert into raised (tenant, account) values (:tenant, :id);
select 203 as status;
