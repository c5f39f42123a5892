select 200 as status, 'payment' as resource_type, id as resource_id from payment
where tenant = :tenant and reference = :reference;
