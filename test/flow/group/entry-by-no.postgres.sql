select 200 as status, jsonb_build_object('row', row) as body, 'entry' as resource_type, command_id as resource_id
from entry where no = :no;
