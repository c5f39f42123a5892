select 200 as status, 'case' as resource_type, id as resource_id
  from kase where tenant = :tenant and id = :case and reviewer = :reviewer;
