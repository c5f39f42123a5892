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
