select 200 as status, 'report' as resource_type, id as resource_id
  from report where tenant = :tenant and period = :period;
