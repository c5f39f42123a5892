-- doctor_guards: no parameters
-- What keeps rows from being edited, left unfinished or read by others, and is missing or switched off.
select format('trigger %s of ibid.%s', wanted.name, wanted.root)
from (values ('event', 'event_is_never_edited'), ('event', 'event_is_never_emptied'),
	('delivery', 'delivery_is_never_edited'), ('delivery', 'delivery_is_never_emptied'),
	('audit', 'audit_is_never_edited'), ('audit', 'audit_is_never_emptied'),
	('archive', 'archive_is_never_edited'), ('archive', 'archive_is_never_emptied'),
	('open_command', 'command_is_finished'), ('journal_group', 'journal_group_is_never_edited'),
	('journal_group', 'journal_group_is_never_emptied'), ('journal_line', 'journal_line_is_never_edited'),
	('journal_line', 'journal_line_is_never_emptied'), ('journal_line', 'journal_line_is_of_a_whole_group'),
	('machine_history', 'machine_history_is_never_edited'),
	('machine_history', 'machine_history_is_never_emptied'),
	('action', 'action_is_never_edited'), ('action', 'action_is_never_emptied'),
	('approval', 'approval_is_decided_once'), ('approval', 'approval_is_never_emptied')) as wanted (root, name)
where not exists (
	select from pg_catalog.pg_trigger as t
	join pg_catalog.pg_class as c on c.oid = t.tgrelid
	join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
	where n.nspname = 'ibid' and c.relname = wanted.root and t.tgname = wanted.name
		and t.tgenabled in ('O', 'A'))
union all
select format('trigger %s of ibid.%s', t.tgname, c.relname)
from pg_catalog.pg_trigger as t
join pg_catalog.pg_class as c on c.oid = t.tgrelid
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where n.nspname = 'ibid' and c.relispartition and not t.tgisinternal and t.tgenabled not in ('O', 'A')
union all
select format('row security of ibid.%s', c.relname)
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
join pg_catalog.pg_attribute as a on a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped
where n.nspname = 'ibid' and c.relkind in ('r', 'p') and not c.relispartition and not c.relrowsecurity
	and c.relname not in ('tenant_role', 'open_command')
order by 1
