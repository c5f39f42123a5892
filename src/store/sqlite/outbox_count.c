/* SPDX-License-Identifier: Apache-2.0 */
/* outbox_count.c -- how many events wait for each destination. What is kept, what is exact and what
 * lags is told in migrations/002_outbox_count.sql. */
#include "store/outbox.h"

#include "store/sqlite/lite.h"

/* ---- Counting ------------------------------------------------------------------------------- */

/* Of one lane: from where to where is counted now. */
struct scan {
	int lane;
	int64_t limit, from, upto;
	bool cut; /* there is more behind it */
};

static enum ibid_code find_next(struct lite_conn *conn, struct scan *scan, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_outbox_scan_next, &run, err);
	lite_bind_int(&run, scan->lane);
	lite_bind_int(&run, scan->limit);
	if (lite_row(&run, &code, err)) {
		scan->from = lite_read_int(&run);
		scan->upto = lite_read_int(&run);
		scan->cut = lite_read_int(&run);
	}
	lite_end(&run);
	return code;
}

static enum ibid_code add_written(struct lite_conn *conn, const struct scan *scan,
                                  struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_outbox_count_add, &run, err);
	lite_bind_int(&run, scan->lane);
	lite_bind_int(&run, scan->from);
	lite_bind_int(&run, scan->upto);
	return lite_conclude(&run, code, err);
}

static enum ibid_code keep_place(struct lite_conn *conn, const struct scan *scan,
                                 struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_outbox_scan_put, &run, err);
	lite_bind_int(&run, scan->lane);
	lite_bind_int(&run, scan->upto);
	return lite_conclude(&run, code, err);
}

struct passed_row {
	const char *destination;
	int64_t written, behind, passed, cursor;
};

static void read_passed(struct lite_run *run, struct arena *arena, void *row)
{
	struct passed_row *ret = row;
	ret->destination = lite_read_text(run, arena);
	ret->written = lite_read_int(run);
	ret->behind = lite_read_int(run);
	ret->passed = lite_read_int(run);
	ret->cursor = lite_read_int(run);
}

static enum ibid_code list_passed(struct lite_conn *conn, int lane, struct lite_rows *rows,
                                  struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_outbox_passed_list, &run, err);
	lite_bind_int(&run, lane);
	code = lite_rows_read(rows, &run, read_passed, code, err);
	lite_end(&run);
	return code;
}

/* Events of a lane between two places, for one destination. */
struct stretch {
	int lane;
	const char *destination;
	int64_t from, upto, limit;
	int64_t looked, events, last;
};

static enum ibid_code count_between(struct lite_conn *conn, struct stretch *stretch,
                                    struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_outbox_between, &run, err);
	lite_bind_int(&run, stretch->lane);
	lite_bind_int(&run, stretch->from);
	lite_bind_int(&run, stretch->upto);
	lite_bind_text(&run, stretch->destination);
	lite_bind_int(&run, stretch->limit);
	if (lite_row(&run, &code, err)) {
		stretch->looked = lite_read_int(&run);
		stretch->events = lite_read_int(&run);
		stretch->last = lite_read_int(&run);
	}
	lite_end(&run);
	return code;
}

static enum ibid_code put_passed(struct lite_conn *conn, int lane, const struct passed_row *row,
                                 struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_outbox_count_pass, &run, err);
	lite_bind_text(&run, row->destination);
	lite_bind_int(&run, lane);
	lite_bind_int(&run, row->behind);
	lite_bind_int(&run, row->passed);
	return lite_conclude(&run, code, err);
}

/* Where little is behind the relay that is counted, and nothing need be known of what is before it.
 */
static enum ibid_code pass(struct lite_conn *conn, const struct scan *scan, struct passed_row *row,
                           bool *more, struct ibid_err *err)
{
	struct stretch left = {scan->lane, row->destination, row->cursor, scan->upto,
	                       .limit = BACKLOG_NEAR};
	struct stretch gone = {scan->lane, row->destination, row->behind, row->cursor,
	                       .limit = scan->limit};
	enum ibid_code code = scan->cut ? IBID_OK : count_between(conn, &left, err);
	if (!code && !scan->cut && left.looked < left.limit) {
		row->passed = row->written - left.events;
		row->behind = row->cursor;
	} else if (!code) {
		code = count_between(conn, &gone, err);
		bool cut = gone.looked >= gone.limit && gone.last < row->cursor;
		row->passed += gone.events;
		row->behind = cut ? gone.last : row->cursor;
		*more |= cut;
	}
	return code ? code : put_passed(conn, scan->lane, row, err);
}

static enum ibid_code pass_all(struct lite_conn *conn, const struct scan *scan, bool *more,
                               struct ibid_err *err)
{
	struct arena arena = {0};
	struct lite_rows rows = {.arena = &arena, .size = sizeof(struct passed_row)};
	enum ibid_code code = list_passed(conn, scan->lane, &rows, err);
	struct passed_row *items = rows.items;
	for (size_t i = 0; !code && i < rows.count; i++)
		code = pass(conn, scan, &items[i], more, err);
	arena_release(&arena);
	return code;
}

static enum ibid_code count_lane(struct lite_conn *conn, int lane, size_t limit, bool *more,
                                 struct ibid_err *err)
{
	struct scan scan = {.lane = lane, .limit = limit ? (int64_t)limit : 1};
	enum ibid_code code = find_next(conn, &scan, err);
	if (!code && scan.upto > scan.from)
		code = add_written(conn, &scan, err);
	if (!code && scan.upto > scan.from)
		code = keep_place(conn, &scan, err);
	*more |= scan.cut;
	return code ? code : pass_all(conn, &scan, more, err);
}

enum ibid_code lite_count_outbox(struct store *base, size_t limit, bool *ret_more,
                                 struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	bool more = false;
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	for (int lane = 0; !code && lane < OUTBOX_LANES; lane++)
		code = count_lane(conn, lane, limit, &more, err);
	code = lite_write_end(store, code, err);
	if (!code)
		*ret_more = more;
	return code;
}

/* ---- Measuring ------------------------------------------------------------------------------ */

static void read_backlog(struct lite_run *run, struct arena *arena, void *row)
{
	struct backlog_row *ret = row;
	ret->destination = lite_read_text(run, arena);
	ret->written = lite_read_int(run);
	ret->delivered = lite_read_int(run);
	ret->backlog = lite_read_int(run);
	ret->held = lite_read_int(run);
	ret->failed = lite_read_int(run);
	ret->parked = lite_read_int(run);
	ret->oldest_us = lite_read_int(run);
	ret->leased = lite_read_int(run);
	ret->moved_us = lite_read_int(run);
}

enum ibid_code lite_measure_outbox(struct store *base, struct arena *arena,
                                   struct backlog_row **ret, size_t *ret_count,
                                   struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct backlog_row)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_start(conn, LITE_outbox_measure, &run, err);
	lite_bind_int(&run, OUTBOX_LANES);
	lite_bind_int(&run, BACKLOG_NEAR);
	lite_bind_int(&run, env_wall_us(store->env));
	code = lite_rows_read(&rows, &run, read_backlog, code, err);
	lite_end(&run);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
