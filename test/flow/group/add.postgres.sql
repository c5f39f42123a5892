select ibid.reject('NEGATIVE', 422, 'only more can be added') where :amount < 0;

update hot set n = n + :amount where id = :row;
-- 13: its parent is missing. 14: it comes later. 15: it makes the one that 13 misses.
insert into entry (command_id, row, amount, no, parent)
values (:command_id, :row, :amount, :no, case :amount when 13 then 13 when 14 then 14 end);
insert into parent (id) select case :amount when 14 then 14 else 13 end where :amount in (14, 15);
-- 999 fails
select 1 / (999 - :amount);
select ibid.emit('entry', :command_id::text, 'Added', jsonb_build_object('amount', :amount));

select 201 as status, jsonb_build_object('row', :row) as body, 'entry' as resource_type,
	:command_id as resource_id;
