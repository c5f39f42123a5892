/* SPDX-License-Identifier: Apache-2.0 */
/* payload.c -- what is kept of a payload: one text per command. */
#include "store/sqlite/lite.h"

enum ibid_code lite_keep_payload(struct lite_conn *conn, const struct payload_row *row,
                                 struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, row->text ? LITE_payload_put : LITE_payload_delete, &run,
	                                 err);
	lite_bind_text(&run, row->tenant);
	lite_bind_uuid(&run, &row->command_id);
	if (row->text)
		lite_bind_bytes(&run, row->text, row->size);
	return lite_conclude(&run, code, err);
}

enum ibid_code lite_put_payload(struct tx *base, const struct payload_row *row,
                                struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	enum ibid_code code = lite_tx_ready(tx, err);
	if (code)
		return code;
	return lite_tx_failed(tx, lite_keep_payload(tx->conn, row, err), err);
}

static enum ibid_code find(struct lite_conn *conn, struct arena *arena, const char *tenant,
                           const struct uuid *command_id, struct payload_row *ret,
                           struct ibid_err *err)
{
	struct lite_run run;
	struct payload_row row = {.command_id = *command_id};
	enum ibid_code code = lite_start(conn, LITE_payload_get, &run, err);
	lite_bind_text(&run, tenant);
	lite_bind_uuid(&run, command_id);
	if (lite_row(&run, &code, err))
		row.text = lite_read_bytes(&run, arena, &row.size);
	else if (!code)
		code = err_set(err, IBID_NOT_FOUND, "no payload is kept of this command");
	lite_end(&run);
	row.tenant = arena_strdup(arena, tenant);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		*ret = row;
	return code;
}

enum ibid_code lite_get_payload(struct store *base, struct arena *arena, const char *tenant,
                                const struct uuid *command_id, struct payload_row *ret,
                                struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = find(conn, arena, tenant, command_id, ret, err);
	lite_reader_give(store, conn);
	return code;
}
