insert into counter (tenant, name, value) values (:tenant, :name, 1)
  on conflict (tenant, name) do update set value = counter.value + 1;
select 200 as status;
