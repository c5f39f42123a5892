insert into entry (command_id, row, amount, no) values (:command_id, :row, :amount, :no);
with recursive each (n) as (select 1 union all select n + 1 from each where n < :amount)
select ibid_emit('stream', 'one', 'Told', json_object('text', 'a "quote", a {brace}', 'n', n)) from each;
-- 7 is not declared, 9 is not JSON.
select ibid_emit('entry', :command_id, case :amount when 7 then 'Never' else 'Added' end,
	case :amount when 9 then 'no JSON' else '{"plain": true}' end);
select 201 as status, 'entry' as resource_type, :command_id as resource_id;
