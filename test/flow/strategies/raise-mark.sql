insert into counter (tenant, name, value) values (:tenant, :name, :value)
  on conflict (tenant, name) do update set value = case when counter.value < :value then :value else counter.value end;
select 200 as status;
