-- doctor_missing: no parameters
-- Indexes and triggers that ibid relies on and that are gone. Primary keys can't be dropped.
select wanted.type, wanted.name
from (
  select 'index' as type, 'ibid_command_id' as name
  union all select 'index', 'ibid_event_id'
  union all select 'index', 'ibid_exception_open'
  union all select 'trigger', 'ibid_event_is_never_replaced'
  union all select 'trigger', 'ibid_event_is_never_edited'
  union all select 'trigger', 'ibid_event_is_never_deleted'
  union all select 'trigger', 'ibid_audit_is_never_replaced'
  union all select 'trigger', 'ibid_audit_is_never_edited'
  union all select 'trigger', 'ibid_audit_is_never_deleted'
  ) wanted
where not exists (
  select 1 from sqlite_schema s where s.type = wanted.type and s.name = wanted.name)
order by wanted.type, wanted.name
