/* SPDX-License-Identifier: Apache-2.0 */
/* sql.h -- the statements and migrations of this backend, embedded from sql/ and migrations/.
 */
#ifndef STORE_SQLITE_SQL_H
#define STORE_SQLITE_SQL_H

#include "store/migration.h"

#include <stddef.h>

/* One list for the enum and the texts; X(name) is sql/name.sql. */
/* clang-format off */
#define LITE_STATEMENTS(X) \
	X(action_list) X(action_put) X(approval_decide) X(approval_lapse) X(approval_lapse_open) \
	X(approval_list) X(approval_put) X(exception_assign) X(exception_end) \
	X(adopt_keep) X(adopt_mark) X(adopt_undo) X(open_command_get) X(open_command_put) \
	X(open_command_take) \
	X(archive_bound) X(archive_drop) X(archive_drop_holds) X(archive_leased) X(archive_line) X(archive_list) \
	X(archive_put) X(archive_read) X(archive_restore_deliveries) X(archive_restore_event) X(archive_restore_holds) X(archive_undone) X(archive_window) \
	X(aggregate_new) X(aggregate_next) X(answer_delete) X(answer_put) X(audit_list) X(audit_list_by_command) \
	X(audit_put) X(begin) X(command_get) X(command_get_by_id) X(command_list) \
	X(command_list_all) X(command_list_stale) X(command_list_unknown) X(command_put) X(command_replace) \
	X(commit) X(contract_get) X(contract_put) X(decimal_column) X(doctor_missing) \
	X(delivery_hold_decide) X(delivery_hold_of_event) X(delivery_hold_parked) X(delivery_hold_withdraw) \
	X(delivery_hold_withdrawn) \
	X(delivery_hold_delete) X(delivery_hold_list) X(delivery_hold_put) X(delivery_list) X(delivery_put) \
	X(duplicate_get) X(duplicate_put) X(duplicate_seen_list) X(duplicate_seen_put) \
	X(erase_answer) X(erase_audit_names) X(erase_close) X(erase_command_names) \
	X(erase_count) X(erase_event) X(erase_evidence) X(erase_evidence_merge) \
	X(erase_exception) X(erase_left) X(erase_payload) X(erase_reason) X(erase_seen) \
	X(erase_select) X(erase_text) X(erase_window) X(erasure_finish) X(erasure_list) \
	X(erasure_put) \
	X(event_key_put) X(event_list) X(event_list_by_command) X(event_put) \
	X(evidence_list) X(evidence_put) X(exception_get) X(exception_list) \
	X(exception_list_open) X(exception_measure) X(exception_put) X(exception_resolve) X(fence_put) X(foreign_keys_get) \
	X(group_release) X(group_savepoint) X(group_undo) \
	X(index_describe) X(journal_group_by_source) X(journal_group_count) \
	X(journal_group_put) X(journal_line_list) X(journal_line_put) X(journal_mode_get) \
	X(lane_read) X(lane_read_doubtful) X(lease_renew) X(ledger_measure) X(machine_history_put) X(machine_move_clear) X(machine_move_get) \
	X(machine_move_put) X(machine_state_get) X(machine_state_put) \
	X(pause_end) X(pause_list) X(pause_put) \
	X(outbox_event_list) X(outbox_get) X(outbox_list_held) X(outbox_tenant_next) \
	X(outbox_between) X(outbox_count_add) X(outbox_count_pass) X(outbox_measure) X(outbox_passed_list) \
	X(outbox_scan_next) X(outbox_scan_put) \
	X(payload_delete) X(payload_get) X(payload_put) X(query_only_set) \
	X(quick_check) X(reference_by_external) X(reference_by_resource) X(reference_put) \
	X(relay_count) X(relay_forget) X(relay_gone) X(relay_lane_holds) X(relay_lane_list) X(relay_lane_make) \
	X(relay_lane_settle) X(relay_lane_take) X(relay_put) \
	X(retain_answer) X(retain_audit) X(retain_command) X(retain_duplicate) \
	X(retain_evidence) X(retain_payload) X(retain_seen) X(retain_tenant) X(retain_text) \
	X(retain_tombstone) X(retain_window) X(retention_close) X(retention_open) \
	X(rollback) X(schema_exists) \
	X(schema_file_get) X(schema_file_put) X(schema_put) X(schema_version) \
	X(secure_delete_get) X(secure_delete_off) X(secure_delete_on) X(synchronous_get) \
	X(synchronous_set) X(temp_store_set) X(token_get) X(token_list) X(token_put) X(token_revoke) \
	X(unique_by_columns) X(wal_set)
/* clang-format on */

enum lite_sql {
#define LITE_SQL_ENUM(name) LITE_##name,
	LITE_STATEMENTS(LITE_SQL_ENUM)
#undef LITE_SQL_ENUM
	    LITE_SQL_COUNT
};

struct lite_sql_text {
	const char *name, *sql;
};

extern const struct lite_sql_text lite_sql[LITE_SQL_COUNT];

extern const struct migration *const lite_migrations; /* in order */
extern const size_t lite_migration_count;

#endif
