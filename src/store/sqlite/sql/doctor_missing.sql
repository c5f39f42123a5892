-- doctor_missing: no parameters
-- Indexes and triggers that ibid relies on and that are gone. Primary keys can't be dropped.
select wanted.type, wanted.name
from (
  select 'index' as type, 'ibid_command_id' as name
  union all select 'index', 'ibid_event_id'
  union all select 'index', 'ibid_event_lane'
  union all select 'index', 'ibid_delivery_hold_lane'
  union all select 'index', 'ibid_exception_open'
  union all select 'index', 'ibid_command_lease'
  union all select 'index', 'ibid_action_subject'
  union all select 'index', 'ibid_approval_waiting'
  union all select 'index', 'ibid_approval_subject'
  union all select 'index', 'ibid_duplicate_seen_command'
  union all select 'index', 'ibid_external_reference_resource'
  union all select 'index', 'ibid_journal_group_source'
  union all select 'index', 'ibid_journal_line_account'
  union all select 'trigger', 'ibid_event_is_never_replaced'
  union all select 'trigger', 'ibid_event_is_never_edited'
  union all select 'trigger', 'ibid_event_is_never_deleted'
  union all select 'trigger', 'ibid_event_trace_is_never_edited'
  union all select 'trigger', 'ibid_event_lane_is_never_edited'
  union all select 'trigger', 'ibid_event_goes_with_its_deliveries'
  union all select 'trigger', 'ibid_delivery_is_never_replaced'
  union all select 'trigger', 'ibid_delivery_is_never_edited'
  union all select 'trigger', 'ibid_delivery_is_never_deleted'
  union all select 'trigger', 'ibid_audit_is_never_replaced'
  union all select 'trigger', 'ibid_audit_is_never_edited'
  union all select 'trigger', 'ibid_audit_is_never_deleted'
  union all select 'trigger', 'ibid_audit_trace_is_never_edited'
  union all select 'trigger', 'ibid_journal_group_is_never_replaced'
  union all select 'trigger', 'ibid_journal_group_is_never_edited'
  union all select 'trigger', 'ibid_journal_group_is_never_deleted'
  union all select 'trigger', 'ibid_journal_line_is_never_replaced'
  union all select 'trigger', 'ibid_journal_line_is_never_edited'
  union all select 'trigger', 'ibid_journal_line_is_never_deleted'
  union all select 'trigger', 'ibid_machine_history_is_never_replaced'
  union all select 'trigger', 'ibid_machine_history_is_never_edited'
  union all select 'trigger', 'ibid_machine_history_is_never_deleted'
  union all select 'trigger', 'ibid_action_is_never_replaced'
  union all select 'trigger', 'ibid_action_is_never_edited'
  union all select 'trigger', 'ibid_action_is_never_deleted'
  union all select 'trigger', 'ibid_approval_is_never_replaced'
  union all select 'trigger', 'ibid_approval_is_decided_once'
  union all select 'trigger', 'ibid_approval_is_never_deleted'
  ) wanted
where not exists (
  select 1 from sqlite_schema s where s.type = wanted.type and s.name = wanted.name)
order by wanted.type, wanted.name
