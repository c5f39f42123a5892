/* SPDX-License-Identifier: Apache-2.0 */
/* outbox.c -- lanes of the outbox: who holds them, what is new in them, what became of it.
 *
 * One writer makes the order of seq the order of commits: nothing ever appears behind an event that
 * was seen. So a cursor is the last seq that was read, and no event comes early. A read ends with
 * its verb: no snapshot is open while a relay talks to its destination, or the WAL would grow.
 * Whether a lease has ended is told by the process's clock, as in stage.c. */
#include "store/outbox.h"

#include "store/run.h"
#include "store/sqlite/lite.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Leases --------------------------------------------------------------------------------- */

static enum ibid_code announce(struct lite_conn *conn, const struct lane_wish *wish, int64_t now_us,
                               struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_relay_put, &run, err);
	lite_bind_text(&run, wish->destination);
	lite_bind_text(&run, wish->relay);
	lite_bind_int(&run, now_us + wish->lease_us);
	return lite_conclude(&run, code, err);
}

static enum ibid_code forget_gone(struct lite_conn *conn, const struct lane_wish *wish,
                                  int64_t now_us, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_relay_forget, &run, err);
	lite_bind_text(&run, wish->destination);
	lite_bind_int(&run, now_us);
	return lite_conclude(&run, code, err);
}

static enum ibid_code make_lanes(struct lite_conn *conn, const char *destination,
                                 struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_relay_lane_make, &run, err);
	lite_bind_text(&run, destination);
	lite_bind_int(&run, OUTBOX_LANES);
	return lite_conclude(&run, code, err);
}

/* Its share of the lanes, and how many it holds. */
static enum ibid_code count_share(struct lite_conn *conn, const struct lane_wish *wish,
                                  int64_t now_us, size_t *ret_share, size_t *ret_held,
                                  struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_relay_count, &run, err);
	lite_bind_text(&run, wish->destination);
	lite_bind_text(&run, wish->relay);
	lite_bind_int(&run, now_us);
	if (lite_row(&run, &code, err)) {
		size_t relays = (size_t)lite_read_int(&run);
		assert(relays > 0);                                /* it has said so itself */
		*ret_share = (OUTBOX_LANES + relays - 1) / relays; /* rounded up: no lane is left over */
		*ret_held = (size_t)lite_read_int(&run);
	}
	lite_end(&run);
	return code;
}

static void read_lease(struct lite_run *run, struct arena *arena, void *row)
{
	struct lane_lease *ret = row;
	ret->lane = lite_read_small(run);
	ret->token = lite_read_int(run);
	ret->cursor = lite_read_text(run, arena);
}

static enum ibid_code take_lanes(struct lite_conn *conn, const struct lane_wish *wish,
                                 int64_t now_us, size_t most, struct lite_rows *rows,
                                 struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_relay_lane_take, &run, err);
	lite_bind_text(&run, wish->destination);
	lite_bind_text(&run, wish->relay);
	lite_bind_int(&run, now_us);
	lite_bind_int(&run, now_us + wish->lease_us);
	lite_bind_int(&run, (int64_t)most);
	code = lite_rows_read(rows, &run, read_lease, code, err);
	lite_end(&run);
	return code;
}

static enum ibid_code lease(struct lite_conn *conn, const struct lane_wish *wish, int64_t now_us,
                            struct lite_rows *rows, size_t *ret_share, struct ibid_err *err)
{
	size_t held = 0;
	enum ibid_code code = forget_gone(conn, wish, now_us, err);
	if (!code)
		code = announce(conn, wish, now_us, err);
	if (!code)
		code = make_lanes(conn, wish->destination, err);
	if (!code)
		code = count_share(conn, wish, now_us, ret_share, &held, err);
	if (!code && held < *ret_share)
		code = take_lanes(conn, wish, now_us, *ret_share - held, rows, err);
	return code;
}

static enum ibid_code leave(struct lite_conn *conn, const struct lane_wish *wish,
                            struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_relay_gone, &run, err);
	lite_bind_text(&run, wish->destination);
	lite_bind_text(&run, wish->relay);
	return lite_conclude(&run, code, err);
}

enum ibid_code lite_lease_lanes(struct store *base, struct arena *arena,
                                const struct lane_wish *wish, struct lane_lease **ret,
                                size_t *ret_count, size_t *ret_share, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct lane_lease)};
	struct lite_conn *conn;
	size_t share = 0;
	const char *destination = arena_strdup(arena, wish->destination);
	if (!destination)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	code = wish->lease_us ? lease(conn, wish, env_wall_us(store->env), &rows, &share, err)
	                      : leave(conn, wish, err);
	code = lite_write_end(store, code, err);
	if (code)
		return code;
	*ret = rows.items;
	*ret_count = rows.count;
	*ret_share = share;
	for (size_t i = 0; i < rows.count; i++)
		(*ret)[i].destination = destination;
	return IBID_OK;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static bool read_cursor(const char *cursor, int64_t *ret)
{
	char *end;
	*ret = 0;
	if (!*cursor)
		return true;
	errno = 0;
	*ret = strtoll(cursor, &end, 10);
	return !errno && !*end && *ret > 0;
}

struct reading {
	size_t limit;
	int64_t seq; /* of the last event that was looked at */
	struct lite_rows rows;
	bool more, withdrawn;
};

/* Take what did not arrive until there is enough, and look whether anything is behind it. What
 * arrived is passed over for good: the cursor stands behind it. */
static enum ibid_code read_events(struct reading *reading, struct lite_run *run,
                                  enum ibid_code code, struct ibid_err *err)
{
	struct lite_rows *rows = &reading->rows;
	while (lite_row(run, &code, err)) {
		if (rows->count == reading->limit) {
			reading->more = true;
			break;
		}
		reading->seq = lite_read_int(run);
		if (lite_read_int(run))
			continue;
		struct outbox_event *row = lite_rows_add(rows);
		if (row)
			lite_read_row(run, &event_shape, rows->arena, &row->event);
		if (rows->arena->failed)
			code = err_set(err, IBID_NOMEM, "out of memory");
	}
	return code;
}

static enum ibid_code read_lane(struct lite_conn *conn, const struct lane_lease *lease,
                                bool doubtful, struct reading *reading, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, doubtful ? LITE_lane_read_doubtful : LITE_lane_read,
	                                 &run, err);
	lite_bind_int(&run, lease->lane);
	lite_bind_int(&run, reading->seq);
	if (doubtful)
		lite_bind_text(&run, lease->destination);
	code = read_events(reading, &run, code, err);
	lite_end(&run);
	if (code)
		return code;
	/* After what was read: what was withdrawn before it is told. */
	code = lite_start(conn, LITE_delivery_hold_withdrawn, &run, err);
	lite_bind_text(&run, lease->destination);
	lite_bind_int(&run, lease->lane);
	reading->withdrawn = lite_row(&run, &code, err);
	lite_end(&run);
	return code;
}

enum ibid_code lite_read_lane(struct store *base, struct arena *arena,
                              const struct lane_lease *lease, const char *cursor, size_t limit,
                              bool doubtful, struct lane_batch *ret, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct reading reading = {
	    .limit = limit,
	    .rows = {.arena = arena, .size = sizeof(struct outbox_event)},
	};
	if (!read_cursor(cursor, &reading.seq))
		return err_set(err, IBID_INVALID, "lane %d of %s: %s is no cursor of this store",
		               lease->lane, lease->destination, cursor);
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = read_lane(conn, lease, doubtful, &reading, err);
	lite_reader_give(store, conn);
	const char *behind = reading.seq ? arena_printf(arena, "%" PRId64, reading.seq) : "";
	if (!code && !behind)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		*ret = (struct lane_batch){reading.rows.items, reading.rows.count, behind, reading.more,
		                           reading.withdrawn};
	return code;
}

static enum ibid_code read_held(struct lite_run *run, struct arena *arena, struct held_event *ret,
                                struct ibid_err *err)
{
	struct hold_row *hold = &ret->hold;
	ret->arrived = lite_read_small(run) != 0;
	lite_read_row(run, &hold_shape, arena, hold);
	lite_read_row(run, &event_shape, arena, &ret->event);
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	hold->event_id = ret->event.id;
	hold->held = true;
	hold->was = hold->state;
	return row_check_words(&hold_shape, hold, "an event that is held", err);
}

static enum ibid_code list_held(struct lite_conn *conn, const struct lane_lease *lease,
                                struct lite_rows *rows, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_delivery_hold_list, &run, err);
	lite_bind_text(&run, lease->destination);
	lite_bind_int(&run, lease->lane);
	while (lite_row(&run, &code, err)) {
		struct held_event *row = lite_rows_add(rows);
		code = row ? read_held(&run, rows->arena, row, err)
		           : err_set(err, IBID_NOMEM, "out of memory");
	}
	lite_end(&run);
	return code;
}

enum ibid_code lite_list_held(struct store *base, struct arena *arena,
                              const struct lane_lease *lease, struct held_event **ret,
                              size_t *ret_count, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct held_event)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = list_held(conn, lease, &rows, err);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}

/* ---- Settling ------------------------------------------------------------------------------- */

/* Inside the writer's transaction: nobody takes the lane over before it ends (I6). */
static enum ibid_code check_fence(struct lite_conn *conn, const struct lane_lease *lease,
                                  struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_relay_lane_holds, &run, err);
	lite_bind_text(&run, lease->destination);
	lite_bind_int(&run, lease->lane);
	lite_bind_int(&run, lease->token);
	bool holds = lite_row(&run, &code, err);
	lite_end(&run);
	if (!code && !holds)
		code = err_set(
		    err, IBID_FENCED,
		    "lane %d of destination %s: its lease has ended and another relay has taken it "
		    "over",
		    lease->lane, lease->destination);
	return code;
}

static enum ibid_code leave_hold(struct lite_conn *conn, const struct lane_lease *lease,
                                 const char *tenant, const struct uuid *event_id,
                                 struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_delivery_hold_delete, &run, err);
	lite_bind_text(&run, tenant);
	lite_bind_uuid(&run, event_id);
	lite_bind_text(&run, lease->destination);
	return lite_conclude(&run, code, err);
}

static void bind_or_none(struct lite_run *run, int64_t number)
{
	if (number < 0)
		lite_bind_text(run, NULL);
	else
		lite_bind_int(run, number);
}

/* `*ret_new` is added to. */
static enum ibid_code put_delivery(struct lite_conn *conn, const struct lane_lease *lease,
                                   const struct delivery_row *row, int64_t *ret_new,
                                   struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_delivery_put, &run, err);
	lite_bind_text(&run, row->tenant);
	lite_bind_uuid(&run, &row->event_id);
	lite_bind_text(&run, lease->destination);
	lite_bind_int(&run, lease->token);
	lite_bind_int(&run, row->at_us);
	lite_bind_text(&run, row->place);
	bind_or_none(&run, row->partition);
	bind_or_none(&run, row->offset);
	if (!code)
		code = lite_finish(&run, err);
	if (!code)
		*ret_new += sqlite3_changes(conn->db);
	lite_end(&run);
	return !code && row->was_held ? leave_hold(conn, lease, row->tenant, &row->event_id, err)
	                              : code;
}

static enum ibid_code put_hold(struct lite_conn *conn, const struct lane_lease *lease,
                               const struct hold_row *row, struct ibid_err *err)
{
	struct lite_run run;
	if (row->state == HOLD_ELSEWHERE && row->passed)
		return leave_hold(conn, lease, row->tenant, &row->event_id, err);
	enum ibid_code code = lite_start(conn, LITE_delivery_hold_put, &run, err);
	lite_bind_text(&run, row->tenant);
	lite_bind_uuid(&run, &row->event_id);
	lite_bind_text(&run, lease->destination);
	lite_bind_int(&run, lease->lane);
	lite_bind_text(&run, row->aggregate_type);
	lite_bind_text(&run, row->aggregate_id);
	lite_bind_int(&run, row->version);
	lite_bind_text(&run, hold_state_name(row->state));
	lite_bind_int(&run, row->attempts);
	lite_bind_text(&run, row->reason ? failure_class_name(row->failure) : NULL);
	lite_bind_text(&run, row->reason);
	lite_bind_text(&run, row->why);
	lite_bind_int_or_null(&run, row->next_us);
	lite_bind_int(&run, row->since_us);
	lite_bind_int(&run, row->passed);
	lite_bind_text(&run, row->held ? hold_state_name(row->was) : NULL);
	return lite_conclude(&run, code, err);
}

static enum ibid_code open_item(struct lite_conn *conn, const struct exception_row *row,
                                struct ibid_err *err)
{
	struct sql_in in = SQL_IN(exception_park, exception_shape, row);
	return lite_run_sql(conn, &in, NULL, err);
}

static enum ibid_code move_lane(struct lite_conn *conn, const struct lane_settlement *settlement,
                                int64_t delivered, int64_t now_us, struct ibid_err *err)
{
	struct lite_run run;
	if (!settlement->cursor && !settlement->lease_us && !delivered)
		return IBID_OK;
	enum ibid_code code = lite_start(conn, LITE_relay_lane_settle, &run, err);
	lite_bind_text(&run, settlement->lease->destination);
	lite_bind_int(&run, settlement->lease->lane);
	lite_bind_text(&run, settlement->cursor);
	lite_bind_int(&run, settlement->lease_us);
	lite_bind_int(&run, now_us);
	lite_bind_int(&run, delivered);
	return lite_conclude(&run, code, err);
}

static enum ibid_code settle(struct lite_conn *conn, const struct lane_settlement *settlement,
                             int64_t now_us, struct ibid_err *err)
{
	const struct lane_lease *lease = settlement->lease;
	int64_t delivered = 0;
	enum ibid_code code = check_fence(conn, lease, err);
	for (size_t i = 0; !code && i < settlement->delivery_count; i++)
		code = put_delivery(conn, lease, &settlement->deliveries[i], &delivered, err);
	for (size_t i = 0; !code && i < settlement->hold_count; i++)
		code = put_hold(conn, lease, &settlement->holds[i], err);
	for (size_t i = 0; !code && i < settlement->exception_count; i++)
		code = open_item(conn, &settlement->exceptions[i], err);
	return code ? code : move_lane(conn, settlement, delivered, now_us, err);
}

enum ibid_code lite_settle_lane(struct store *base, const struct lane_settlement *settlement,
                                struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	code = settle(conn, settlement, env_wall_us(store->env), err);
	return lite_write_end(store, code, err);
}

/* ---- Looking -------------------------------------------------------------------------------- */
