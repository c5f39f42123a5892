select 200 as status, null as body, 'timer' as resource_type, id as resource_id
  from timer where tenant = :tenant and case_id = :case_id and state = 'ACTIVE';
