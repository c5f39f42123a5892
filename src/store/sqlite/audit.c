/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c -- business evidence: one entry per accepted intent, never edited (I3). */
#include "store/sqlite/lite.h"

enum ibid_code lite_put_audit(struct tx *base, const struct audit_row *row, struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	struct lite_run run;
	enum ibid_code code = lite_tx_start(tx, LITE_audit_put, &run, err);
	lite_bind_uuid(&run, &row->command_id); /* its id, too */
	lite_bind_uuid(&run, &row->command_id);
	lite_bind_text(&run, row->tenant);
	lite_bind_text(&run, row->operation);
	lite_bind_text(&run, row->fact);
	lite_bind_text(&run, row->outcome);
	lite_bind_int(&run, row->contract_version);
	lite_bind_text(&run, row->client);
	lite_bind_text(&run, row->actor);
	lite_bind_text(&run, row->resource_type);
	lite_bind_text(&run, row->resource_id);
	lite_bind_text(&run, row->correlation_id);
	lite_bind_text(&run, row->causation_id);
	lite_bind_text(&run, row->traceparent);
	lite_bind_text(&run, row->tracestate);
	lite_bind_hash(&run, &row->fingerprint);
	lite_bind_int(&run, row->at_us);
	return lite_tx_failed(tx, lite_conclude(&run, code, err), err);
}

static void read_row(struct lite_run *run, struct arena *arena, void *row)
{
	struct audit_row *ret = row;
	ret->id = lite_read_uuid(run);
	ret->command_id = lite_read_uuid(run);
	ret->tenant = lite_read_text(run, arena);
	ret->operation = lite_read_text(run, arena);
	ret->fact = lite_read_text(run, arena);
	ret->outcome = lite_read_text(run, arena);
	ret->contract_version = lite_read_small(run);
	ret->client = lite_read_text(run, arena);
	ret->actor = lite_read_text(run, arena);
	ret->resource_type = lite_read_text(run, arena);
	ret->resource_id = lite_read_text(run, arena);
	ret->correlation_id = lite_read_text(run, arena);
	ret->causation_id = lite_read_text(run, arena);
	ret->traceparent = lite_read_text(run, arena);
	ret->tracestate = lite_read_text(run, arena);
	ret->fingerprint = lite_read_hash(run);
	ret->at_us = lite_read_int(run);
}

enum ibid_code lite_list_audit(struct store *base, struct arena *arena, const char *tenant,
                               const struct uuid *command_id, size_t limit, struct audit_row **ret,
                               size_t *ret_count, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct audit_row)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_start(conn, command_id ? LITE_audit_list_by_command : LITE_audit_list, &run, err);
	lite_bind_text(&run, tenant);
	if (command_id)
		lite_bind_uuid(&run, command_id);
	lite_bind_int(&run, (int64_t)limit);
	code = lite_rows_read(&rows, &run, read_row, code, err);
	lite_end(&run);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
