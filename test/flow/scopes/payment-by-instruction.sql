select 200 as status, 'bank-execution' as resource_type, reference as resource_id
  from payment where tenant = :tenant and instruction = :instruction;
