select 200 as status, json_object('value', value) as body
  from counter where tenant = :tenant and name = :name;
