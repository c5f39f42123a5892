/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c -- how the ledger stands. The file has no clock of its own: time is the process's. */
#include "store/sqlite/lite.h"

enum { COUNTED_MAX = 100000 }; /* commands that are counted one by one: some milliseconds */

static enum ibid_code read_ledger(struct lite_conn *conn, int64_t now_us, struct measurement *ret,
                                  struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_ledger_measure, &run, err);
	lite_bind_int(&run, now_us);
	lite_bind_int(&run, COUNTED_MAX);
	if (lite_row(&run, &code, err)) {
		ret->in_progress = lite_read_int(&run);
		ret->stale = lite_read_int(&run);
		ret->unknown = lite_read_int(&run);
		ret->commands = lite_read_int(&run);
	}
	lite_end(&run);
	return code;
}

static void read_owner(struct lite_run *run, struct arena *arena, void *ret)
{
	struct owner_count *owner = ret;
	owner->owner = lite_read_text(run, arena);
	owner->open = lite_read_int(run);
	owner->overdue = lite_read_int(run);
}

static enum ibid_code read_exceptions(struct lite_conn *conn, struct arena *arena, int64_t now_us,
                                      struct measurement *ret, struct ibid_err *err)
{
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof *ret->owners};
	enum ibid_code code = lite_start(conn, LITE_exception_measure, &run, err);
	lite_bind_int(&run, now_us);
	code = lite_rows_read(&rows, &run, read_owner, code, err);
	lite_end(&run);
	ret->owners = rows.items;
	ret->owner_count = rows.count;
	for (size_t i = 0; i < rows.count; i++) {
		ret->open += ret->owners[i].open;
		ret->overdue += ret->owners[i].overdue;
	}
	return code;
}

enum ibid_code lite_measure(struct store *base, struct arena *arena, struct measurement *ret,
                            struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct measurement got = {0};
	int64_t now_us = env_wall_us(store->env);
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = read_ledger(conn, now_us, &got, err);
	if (!code)
		code = read_exceptions(conn, arena, now_us, &got, err);
	lite_reader_give(store, conn);
	if (!code)
		*ret = got;
	return code;
}
