insert into flag (tenant, name, value) values (:tenant, :name, :value)
  on conflict (tenant, name) do update set value = :value;
select ibid.emit('flag', :name, 'FlagSet', jsonb_build_object('value', :value));
select 200 as status, 'flag' as resource_type, :name as resource_id;
