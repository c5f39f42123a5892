/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c -- what does not go on until somebody says so. */
#include "store/sqlite/lite.h"

#include <string.h>

enum ibid_code lite_put_pause(struct tx *base, const struct pause_row *row, struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	struct lite_run run;
	enum ibid_code code = lite_tx_start(tx, LITE_pause_put, &run, err);
	lite_bind_text(&run, row->tenant);
	lite_bind_text(&run, pause_kind_name(row->kind));
	lite_bind_text(&run, row->name);
	lite_bind_text(&run, row->by_relay ? "relay" : "person");
	lite_bind_text(&run, row->by);
	lite_bind_text(&run, row->reason);
	lite_bind_int(&run, row->since_us);
	lite_bind_text(&run, row->item_tenant);
	return lite_finish_one(tx, &run, code, "it is paused already", err);
}

enum ibid_code lite_end_pause(struct tx *base, const struct pause_row *row, struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	struct lite_run run;
	enum ibid_code code = lite_tx_start(tx, LITE_pause_end, &run, err);
	lite_bind_text(&run, row->tenant);
	lite_bind_text(&run, pause_kind_name(row->kind));
	lite_bind_text(&run, row->name);
	return lite_finish_one(tx, &run, code, "it is not paused", err);
}

static enum ibid_code read_row(struct lite_run *run, struct arena *arena, struct pause_row *ret,
                               struct ibid_err *err)
{
	ret->tenant = lite_read_text(run, arena);
	const char *kind = lite_read_text(run, arena);
	ret->name = lite_read_text(run, arena);
	const char *source = lite_read_text(run, arena);
	ret->by = lite_read_text(run, arena);
	ret->reason = lite_read_text(run, arena);
	ret->since_us = lite_read_int(run);
	ret->item_tenant = lite_read_text(run, arena);
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	ret->by_relay = strcmp(source, "relay") == 0;
	if (!pause_kind_read(kind, &ret->kind))
		return err_set(err, IBID_SCHEMA, "a %s is paused; upgrade ibid", kind);
	return IBID_OK;
}

enum ibid_code lite_list_pauses(struct store *base, struct arena *arena, const char *tenant,
                                struct pause_row **ret, size_t *ret_count, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct pause_row)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_start(conn, LITE_pause_list, &run, err);
	lite_bind_text(&run, tenant);
	while (lite_row(&run, &code, err)) {
		struct pause_row *row = lite_rows_add(&rows);
		code = row ? read_row(&run, arena, row, err) : err_set(err, IBID_NOMEM, "out of memory");
	}
	lite_end(&run);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
