select 200 as status, 'evidence' as resource_type, id as resource_id
  from evidence where tenant = :tenant and digest = :digest;
