/* SPDX-License-Identifier: Apache-2.0 */
/* duplicate.c -- commands that came again: counted, and where asked for kept one by one. */
#include "store/sqlite/lite.h"

static enum ibid_code add_count(struct lite_conn *conn, const struct duplicate_row *row,
                                struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_duplicate_put, &run, err);
	lite_bind_text(&run, row->tenant);
	lite_bind_uuid(&run, &row->command_id);
	lite_bind_int(&run, row->first_us);
	lite_bind_int(&run, row->last_us);
	lite_bind_int(&run, row->count);
	lite_bind_int(&run, row->unlisted);
	return lite_conclude(&run, code, err);
}

static enum ibid_code add_seen(struct lite_conn *conn, const struct duplicate_seen_row *row,
                               struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_duplicate_seen_put, &run, err);
	lite_bind_text(&run, row->tenant);
	lite_bind_uuid(&run, &row->command_id);
	lite_bind_int(&run, row->at_us);
	lite_bind_text(&run, row->client);
	lite_bind_text(&run, row->actor);
	lite_bind_text(&run, row->decision);
	lite_bind_hash(&run, &row->fingerprint);
	return lite_conclude(&run, code, err);
}

enum ibid_code lite_put_duplicates(struct store *base, const struct duplicate_row *rows,
                                   size_t count, const struct duplicate_seen_row *seen,
                                   size_t seen_count, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	for (size_t i = 0; !code && i < count; i++)
		code = add_count(conn, &rows[i], err);
	for (size_t i = 0; !code && i < seen_count; i++)
		code = add_seen(conn, &seen[i], err);
	return lite_write_end(store, code, err);
}

static void read_count(struct lite_run *run, struct arena *arena, void *row)
{
	struct duplicate_row *ret = row;
	ret->tenant = lite_read_text(run, arena);
	ret->command_id = lite_read_uuid(run);
	ret->first_us = lite_read_int(run);
	ret->last_us = lite_read_int(run);
	ret->count = lite_read_int(run);
	ret->unlisted = lite_read_int(run);
}

static void read_seen(struct lite_run *run, struct arena *arena, void *row)
{
	struct duplicate_seen_row *ret = row;
	ret->tenant = lite_read_text(run, arena);
	ret->command_id = lite_read_uuid(run);
	ret->at_us = lite_read_int(run);
	ret->client = lite_read_text(run, arena);
	ret->actor = lite_read_text(run, arena);
	ret->decision = lite_read_text(run, arena);
	ret->fingerprint = lite_read_hash(run);
}

enum ibid_code lite_get_duplicates(struct store *base, struct arena *arena, const char *tenant,
                                   const struct uuid *command_id, struct duplicate_row *ret,
                                   struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof *ret};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_start(conn, LITE_duplicate_get, &run, err);
	lite_bind_text(&run, tenant);
	lite_bind_uuid(&run, command_id);
	code = lite_rows_read(&rows, &run, read_count, code, err);
	lite_end(&run);
	lite_reader_give(store, conn);
	if (!code)
		*ret = rows.count ? *(struct duplicate_row *)rows.items
		                  : (struct duplicate_row){.count = 0};
	return code;
}

enum ibid_code lite_list_duplicates(struct store *base, struct arena *arena, const char *tenant,
                                    const struct uuid *command_id, size_t limit,
                                    struct duplicate_seen_row **ret, size_t *ret_count,
                                    struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof **ret};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_start(conn, LITE_duplicate_seen_list, &run, err);
	lite_bind_text(&run, tenant);
	lite_bind_uuid(&run, command_id);
	lite_bind_int(&run, (int64_t)limit);
	code = lite_rows_read(&rows, &run, read_seen, code, err);
	lite_end(&run);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
