/* SPDX-License-Identifier: Apache-2.0 */
/* evidence.c -- the same key with another payload: kept once, counted. */
#include "store/sqlite/lite.h"

enum ibid_code lite_count_evidence(struct lite_conn *conn, const struct key_conflict_row *row,
                                   struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_evidence_put, &run, err);
	lite_bind_text(&run, row->tenant);
	lite_bind_uuid(&run, &row->command_id);
	lite_bind_hash(&run, &row->fingerprint);
	lite_bind_text(&run, row->client);
	lite_bind_text(&run, row->actor);
	lite_bind_int(&run, row->first_us);
	lite_bind_int(&run, row->last_us);
	return lite_conclude(&run, code, err);
}

enum ibid_code lite_put_evidence(struct store *base, const struct key_conflict_row *row,
                                 struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	return lite_write_end(store, lite_count_evidence(conn, row, err), err);
}

static void read_row(struct lite_run *run, struct arena *arena, void *row)
{
	struct key_conflict_row *ret = row;
	ret->tenant = lite_read_text(run, arena);
	ret->command_id = lite_read_uuid(run);
	ret->fingerprint = lite_read_hash(run);
	ret->client = lite_read_text(run, arena);
	ret->actor = lite_read_text(run, arena);
	ret->first_us = lite_read_int(run);
	ret->last_us = lite_read_int(run);
	ret->count = lite_read_int(run);
}

enum ibid_code lite_list_evidence(struct store *base, struct arena *arena, const char *tenant,
                                  const struct uuid *command_id, struct key_conflict_row **ret,
                                  size_t *ret_count, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct key_conflict_row)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_start(conn, LITE_evidence_list, &run, err);
	lite_bind_text(&run, tenant);
	lite_bind_uuid(&run, command_id);
	code = lite_rows_read(&rows, &run, read_row, code, err);
	lite_end(&run);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
