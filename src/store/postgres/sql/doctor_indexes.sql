-- doctor_indexes: no parameters
-- Indexes that ibid relies on and that are missing or invalid.
select 'index ibid.' || wanted.name
from (values ('command_pkey'), ('command_tenant_id_key'), ('answer_pkey'), ('payload_pkey'), ('erasure_pkey'), ('evidence_pkey'),
	('aggregate_pkey'), ('event_key_pkey'), ('event_pkey'),
	('audit_pkey'), ('contract_pkey'), ('schema_file_pkey'), ('command_lease'), ('open_command_pkey'),
	('tenant_role_pkey'), ('exception_pkey'), ('exception_open_key'), ('duplicate_pkey'),
	('external_reference_pkey'), ('external_reference_resource_key'), ('journal_group_pkey'),
	('journal_group_source_key'), ('journal_line_pkey'), ('journal_line_account'),
	('machine_move_pkey'), ('machine_state_pkey'), ('machine_history_pkey'), ('duplicate_seen_pkey'), ('token_pkey'),
	('action_pkey'), ('action_subject'), ('approval_pkey'), ('approval_waiting_key'), ('approval_subject'),
	('archive_pkey'), ('event_lane'), ('relay_pkey'), ('relay_lane_pkey'), ('delivery_pkey'), ('delivery_hold_pkey'),
	('delivery_hold_lane'), ('delivery_hold_withdrawn'), ('pause_pkey'), ('outbox_scan_pkey'), ('outbox_count_pkey'))
	as wanted (name)
where not exists (
	select from pg_catalog.pg_index as i
	join pg_catalog.pg_class as c on c.oid = i.indexrelid
	join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
	where n.nspname = 'ibid' and c.relname = wanted.name and i.indisvalid)
order by wanted.name
