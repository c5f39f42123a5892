/* SPDX-License-Identifier: Apache-2.0 */
/* retain.c -- remove what has had its time, a window of ids a transaction.
 *
 * The triggers that keep events and audit entries (I3) let go while a row is in ibid_retention;
 * that row never outlives the transaction. A dry run does the same work and rolls it back. */
#include "store/sqlite/lite.h"

#include <string.h>

/* The ids of one step: after `from`, up to `upto`. */
struct window {
	const struct retention *retention;
	const char *tenant;
	struct uuid from, upto;
};

static enum ibid_code next_tenant(struct lite_conn *conn, struct arena *arena,
                                  struct retention_cursor *cursor, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_retain_tenant, &run, err);
	lite_bind_text(&run, cursor->tenant ? cursor->tenant : "");
	if (lite_row(&run, &code, err)) {
		*cursor = (struct retention_cursor){.tenant = lite_read_text(&run, arena)};
		cursor->done = !cursor->tenant;
	}
	lite_end(&run);
	return code;
}

/* `*ret` all zero: nothing is left of this tenant. */
static enum ibid_code find_window(struct lite_conn *conn, const struct retention *retention,
                                  const struct retention_cursor *cursor, struct uuid *ret,
                                  struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_retain_window, &run, err);
	lite_bind_text(&run, cursor->tenant);
	lite_bind_uuid(&run, &cursor->id);
	lite_bind_uuid(&run, &retention->before);
	lite_bind_int(&run, (int64_t)retention->batch);
	if (lite_row(&run, &code, err))
		*ret = lite_read_uuid(&run);
	lite_end(&run);
	return code;
}

static enum ibid_code start(struct lite_conn *conn, enum lite_sql sql, const struct window *window,
                            bool periods, struct lite_run *run, struct ibid_err *err)
{
	enum ibid_code code = lite_start(conn, sql, run, err);
	lite_bind_text(run, window->tenant);
	lite_bind_uuid(run, &window->from);
	lite_bind_uuid(run, &window->upto);
	lite_bind_int(run, window->retention->now_us);
	if (periods)
		lite_bind_text(run, window->retention->audit_us);
	return code;
}

/* Run one of the statements that remove; `ret` is added to. */
static enum ibid_code remove_rows(struct lite_conn *conn, enum lite_sql sql,
                                  const struct window *window, bool periods, int64_t *ret,
                                  struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = start(conn, sql, window, periods, &run, err);
	if (!code)
		code = lite_finish(&run, err);
	if (!code)
		*ret += sqlite3_changes(conn->db);
	lite_end(&run);
	return code;
}

static enum ibid_code count_tombstones(struct lite_conn *conn, const struct window *window,
                                       int64_t *ret, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = start(conn, LITE_retain_tombstone, window, true, &run, err);
	if (lite_row(&run, &code, err))
		*ret += lite_read_int(&run);
	lite_end(&run);
	return code;
}

static enum ibid_code remove_window(struct lite_conn *conn, const struct window *window,
                                    struct retention_count *ret, struct ibid_err *err)
{
	int64_t texts = 0;
	const struct {
		enum lite_sql sql;
		bool periods;
		int64_t *count;
	} steps[] = {
	    {LITE_retain_seen, true, &ret->duplicates},
	    {LITE_retain_duplicate, true, &ret->duplicates},
	    {LITE_retain_evidence, true, &ret->evidence},
	    {LITE_retain_answer, false, &ret->answers},
	    {LITE_retain_payload, false, &ret->payloads},
	    {LITE_retain_command, true, &ret->commands},
	    {LITE_retain_audit, true, &ret->audit},
	    {LITE_retain_text, false, &texts},
	};
	enum ibid_code code = count_tombstones(conn, window, &ret->tombstones, err);
	for (size_t i = 0; !code && i < sizeof steps / sizeof *steps; i++)
		code = remove_rows(conn, steps[i].sql, window, steps[i].periods, steps[i].count, err);
	return code;
}

/* In the writer's transaction, with the triggers open. */
static enum ibid_code step(struct lite_conn *conn, struct arena *arena,
                           const struct retention *retention, struct retention_cursor *cursor,
                           struct retention_count *ret, struct ibid_err *err)
{
	struct uuid upto = {{0}};
	static const struct uuid none;
	enum ibid_code code = cursor->tenant ? find_window(conn, retention, cursor, &upto, err)
	                                     : IBID_OK;
	if (code)
		return code;
	if (memcmp(&upto, &none, sizeof upto) == 0)
		return next_tenant(conn, arena, cursor, err);
	struct window window = {retention, cursor->tenant, cursor->id, upto};
	code = lite_do(conn, LITE_retention_open, err);
	if (!code)
		code = remove_window(conn, &window, ret, err);
	if (!code)
		code = lite_do(conn, LITE_retention_close, err);
	cursor->id = upto;
	return code;
}

enum ibid_code lite_retain_commands(struct store *base, struct arena *arena,
                                    const struct retention *retention,
                                    struct retention_cursor *cursor, struct retention_count *ret,
                                    struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct retention_cursor moved = *cursor;
	struct retention_count counted = *ret;
	struct lite_conn *conn;
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	code = step(conn, arena, retention, &moved, &counted, err);
	if (!code && retention->dry_run)
		lite_write_rollback(store);
	else
		code = lite_write_end(store, code, err);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code) {
		*cursor = moved;
		*ret = counted;
	}
	return code;
}

enum ibid_code lite_retain_history(struct store *base, const struct retention *retention,
                                   struct retention_count *ret, bool *ret_more,
                                   struct ibid_err *err)
{
	(void)base, (void)retention, (void)ret, (void)err;
	*ret_more = false;
	return IBID_OK;
}
