select 200 as status, 'effect' as resource_type, command_id as resource_id from effect where tenant = :tenant and key = :key;
