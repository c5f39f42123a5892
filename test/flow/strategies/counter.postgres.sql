select 200 as status, jsonb_build_object('value', value) as body
  from counter where tenant = :tenant and name = :name;
