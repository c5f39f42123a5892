select 200 as status, 'flag' as resource_type, name as resource_id
  from flag where tenant = :tenant and name = :name and value = :value;
