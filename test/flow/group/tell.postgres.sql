insert into entry (command_id, row, amount, no) values (:command_id, :row, :amount, :no);
select ibid.emit('stream', 'one', 'Told', jsonb_build_object('text', 'a "quote", a {brace}', 'n', n))
from generate_series(1, :amount) as n;
-- 7 is not declared, 9 is not JSON.
SELECT ibid.emit ( 'entry', :command_id::text, case :amount when 7 then 'Never' else 'Added' end,
	case :amount when 9 then 'no JSON' else '{"plain": true}' end );
select 201 as status, 'entry' as resource_type, :command_id as resource_id;
