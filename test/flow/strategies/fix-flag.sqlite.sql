insert into flag (tenant, name, value) values (:tenant, :name, :value)
  on conflict (tenant, name) do update set value = :value;
select ibid_emit('flag', :name, 'FlagSet', json_object('value', :value));
select 200 as status, 'flag' as resource_type, :name as resource_id;
