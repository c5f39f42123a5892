/* SPDX-License-Identifier: Apache-2.0 */
/* outbox.c -- lanes, what is new in them, and what became of it.
 *
 * How a cursor works is told in lane_read.sql. A settlement is one trip and one transaction, which
 * its end commits: the fence goes first, and where it fails nothing after it runs (I6). */
#include "store/outbox.h"

#include "base/str.h"
#include "store/postgres/array.h"
#include "store/run.h"

#include <assert.h>
#include <string.h>

static enum ibid_code no_memory(struct ibid_err *err)
{
	return err_set(err, IBID_NOMEM, "out of memory");
}

/* ---- Leases --------------------------------------------------------------------------------- */

enum { LEASE_MAKE, LEASE_SEEN, LEASE_LANES, LEASE_STEPS };

/* One row at least; without a lane in it where none was leased. */
static void read_leases(struct arena *arena, const PGresult *result, const char *destination,
                        struct lane_lease *ret, size_t *ret_count)
{
	*ret_count = 0;
	for (int row = 0; ret && row < PQntuples(result); row++) {
		if (!pg_cell(result, row, 1))
			continue;
		ret[(*ret_count)++] = (struct lane_lease){
		    .destination = arena_strdup(arena, destination),
		    .lane = (int)pg_cell_int(result, row, 1),
		    .token = pg_cell_int(result, row, 2),
		    .cursor = pg_cell_text(arena, result, row, 3),
		};
	}
}

static enum ibid_code leave(struct store *base, const struct lane_wish *wish, struct ibid_err *err)
{
	const char *values[] = {wish->destination, wish->relay};
	struct pg_call call = PG_CALL(RELAY_GONE, .values = values);
	enum ibid_code code = pg_pool_query(pg_store_of(base), &call, 1, err);
	pg_release(&call, 1);
	return code;
}

enum ibid_code pg_lease_lanes(struct store *base, struct arena *arena, const struct lane_wish *wish,
                              struct lane_lease **ret, size_t *ret_count, size_t *ret_share,
                              struct ibid_err *err)
{
	const char *lanes = pg_int(arena, OUTBOX_LANES), *lease = pg_int(arena, wish->lease_us);
	const char *make[] = {wish->destination, lanes};
	const char *seen[] = {wish->destination, wish->relay, lease};
	const char *take[] = {wish->destination, wish->relay, lease, lanes};
	struct pg_call calls[LEASE_STEPS] = {
	    [LEASE_MAKE] = PG_CALL(LANE_MAKE, .values = make),
	    [LEASE_SEEN] = PG_CALL(RELAY_SEEN, .values = seen),
	    [LEASE_LANES] = PG_CALL(LANE_LEASE, .values = take),
	};
	if (!wish->lease_us) {
		*ret_count = *ret_share = 0;
		return leave(base, wish, err);
	}
	if (arena->failed)
		return no_memory(err);
	enum ibid_code code = pg_pool_query(pg_store_of(base), calls, LEASE_STEPS, err);
	if (!code) {
		const PGresult *result = calls[LEASE_LANES].result;
		size_t count = 0, share = (size_t)pg_cell_int(result, 0, 0);
		struct lane_lease *leases = arena_array(arena, (size_t)PQntuples(result), sizeof *leases);
		read_leases(arena, result, wish->destination, leases, &count);
		if (arena->failed) {
			code = no_memory(err);
		} else {
			*ret = leases;
			*ret_count = count;
			*ret_share = share;
		}
	}
	pg_release(calls, LEASE_STEPS);
	return code;
}

/* ---- Reading -------------------------------------------------------------------------------- */

enum { READ_PLAN, READ_LANE, READ_STEPS };

/* Before those of the event. */
enum batch_column { BATCH_ID, BATCH_EARLY, BATCH_AFTER, BATCH_CUT, BATCH_CURSOR, BATCH_WITHDRAWN };

static enum ibid_code read_batch(struct arena *arena, PGresult *result, struct lane_batch *ret,
                                 struct ibid_err *err)
{
	assert(PQntuples(result));
	bool some = pg_cell(result, 0, BATCH_ID);
	size_t count = some ? (size_t)PQntuples(result) : 0;
	struct lane_batch batch = {
	    .events = arena_array(arena, count, sizeof *batch.events),
	    .count = count,
	    .cursor = pg_cell_text(arena, result, 0, BATCH_CURSOR),
	    .more = pg_cell_bool(result, 0, BATCH_CUT),
	    .withdrawn = pg_cell_bool(result, 0, BATCH_WITHDRAWN),
	};
	for (size_t i = 0; batch.events && i < count; i++) {
		pg_read_row(result, (int)i, &event_shape, arena, &batch.events[i].event);
		batch.events[i].early = pg_cell_bool(result, (int)i, BATCH_EARLY);
		batch.events[i].after = pg_cell_int(result, (int)i, BATCH_AFTER);
	}
	if (arena->failed)
		return no_memory(err);
	*ret = batch;
	return IBID_OK;
}

enum ibid_code pg_read_lane(struct store *base, struct arena *arena, const struct lane_lease *lease,
                            const char *cursor, size_t limit, bool doubtful, struct lane_batch *ret,
                            struct ibid_err *err)
{
	int64_t most = limit < 1 ? 1 : limit > INT32_MAX ? INT32_MAX : (int64_t)limit;
	const char *values[] = {pg_int(arena, lease->lane), lease->destination, cursor,
	                        pg_int(arena, most), doubtful ? "true" : "false"};
	struct pg_call calls[READ_STEPS] = {
	    [READ_PLAN] = PG_CALL(LANE_PLAN),
	    [READ_LANE] = PG_CALL(LANE_READ, .values = values),
	};
	enum ibid_code code = arena->failed ? no_memory(err)
	                                    : pg_pool_query(pg_store_of(base), calls, READ_STEPS, err);
	if (!code)
		code = read_batch(arena, calls[READ_LANE].result, ret, err);
	pg_release(calls, READ_STEPS);
	return code;
}

/* ---- Settling ------------------------------------------------------------------------------- */

enum { ARRAY_BYTES_MAX = 256 << 20, ARRAYS_MAX = 14 };

/* Arrays that travel as text: a row is added to all of them at once. */
struct arrays {
	struct arena *arena;
	size_t count;
	struct str texts[ARRAYS_MAX];
};

static void arrays_init(struct arrays *arrays, struct arena *arena, size_t count)
{
	assert(count <= ARRAYS_MAX);
	arrays->arena = arena;
	arrays->count = count;
	for (size_t i = 0; i < count; i++)
		arrays->texts[i] = STR_INIT(ARRAY_BYTES_MAX);
}

static void arrays_add(struct arrays *arrays, const char *const *values, size_t count)
{
	assert(count == arrays->count);
	for (size_t i = 0; i < count; i++)
		pg_array_add(&arrays->texts[i], values[i]);
}

/* Into the arena; the arrays are released. */
static void arrays_write(struct arrays *arrays, const char **ret)
{
	for (size_t i = 0; i < arrays->count; i++) {
		struct str *text = &arrays->texts[i];
		str_addc(text, '}');
		arrays->arena->failed |= text->failed;
		ret[i] = text->failed ? NULL : arena_strndup(arrays->arena, str_text(text), text->size);
		str_release(text);
	}
}

enum { PUT_DELIVERY = 8, PUT_HOLD = 16, END_HOLD = 3 };

/* The values of all statements of a settlement, and the calls in their order. */
struct settling {
	struct arena arena;
	const struct lane_settlement *settlement;
	const char *lane[6], *deliveries[PUT_DELIVERY], *ended[END_HOLD], *holds[PUT_HOLD];
	struct pg_call *calls, *evidence; /* one of them; NULL: there is none */
	size_t count;
};

static void add_call(struct settling *settling, struct pg_call call)
{
	settling->calls[settling->count++] = call;
}

static void add_lane(struct settling *settling)
{
	const struct lane_settlement *settlement = settling->settlement;
	struct arena *arena = &settling->arena;
	int64_t arrived = settlement->uncounted + (int64_t)settlement->delivery_count;
	const char *values[] = {
	    settlement->lease->destination,
	    pg_int(arena, settlement->lease->lane),
	    pg_int(arena, settlement->lease->token),
	    settlement->cursor,
	    pg_int(arena, arrived),
	    pg_int(arena, settlement->lease_us),
	};
	memcpy(settling->lane, values, sizeof values);
	add_call(settling, PG_CALL(LANE_PUT, .values = settling->lane));
}

static void add_deliveries(struct settling *settling)
{
	const struct lane_settlement *settlement = settling->settlement;
	struct arena *arena = &settling->arena;
	struct arrays arrays;
	if (!settlement->delivery_count)
		return;
	settling->deliveries[0] = settlement->lease->destination;
	settling->deliveries[1] = pg_int(arena, settlement->lease->token);
	arrays_init(&arrays, arena, PUT_DELIVERY - 2);
	for (size_t i = 0; i < settlement->delivery_count; i++) {
		const struct delivery_row *row = &settlement->deliveries[i];
		const char *values[] = {
		    row->tenant,
		    pg_uuid(arena, &row->event_id),
		    pg_time(arena, row->at_us),
		    row->place,
		    row->partition < 0 ? NULL : pg_int(arena, row->partition),
		    row->offset < 0 ? NULL : pg_int(arena, row->offset),
		};
		arrays_add(&arrays, values, sizeof values / sizeof *values);
	}
	arrays_write(&arrays, settling->deliveries + 2);
	settling->evidence = &settling->calls[settling->count];
	add_call(settling, PG_CALL(DELIVERY_ADD, .values = settling->deliveries));
}

static void end_holds(struct settling *settling)
{
	const struct lane_settlement *settlement = settling->settlement;
	struct arrays arrays;
	size_t ended = 0;
	settling->ended[0] = settlement->lease->destination;
	arrays_init(&arrays, &settling->arena, END_HOLD - 1);
	for (size_t i = 0; i < settlement->delivery_count; i++) {
		const struct delivery_row *row = &settlement->deliveries[i];
		if (!row->was_held)
			continue;
		ended++;
		const char *values[] = {row->tenant, pg_uuid(&settling->arena, &row->event_id)};
		arrays_add(&arrays, values, sizeof values / sizeof *values);
	}
	arrays_write(&arrays, settling->ended + 1);
	if (ended)
		add_call(settling, PG_CALL(HOLD_END, .values = settling->ended));
}

static void add_holds(struct settling *settling)
{
	const struct lane_settlement *settlement = settling->settlement;
	struct arena *arena = &settling->arena;
	struct arrays arrays;
	if (!settlement->hold_count)
		return;
	settling->holds[0] = settlement->lease->destination;
	settling->holds[1] = pg_int(arena, settlement->lease->lane);
	arrays_init(&arrays, arena, PUT_HOLD - 2);
	for (size_t i = 0; i < settlement->hold_count; i++) {
		const struct hold_row *row = &settlement->holds[i];
		const char *values[] = {
		    row->tenant,
		    pg_uuid(arena, &row->event_id),
		    row->aggregate_type,
		    row->aggregate_id,
		    pg_int(arena, row->version),
		    hold_state_name(row->state),
		    pg_int(arena, row->attempts),
		    row->reason ? failure_class_name(row->failure) : NULL,
		    row->reason,
		    row->why,
		    pg_time_or_null(arena, row->next_us),
		    pg_time(arena, row->since_us),
		    row->passed ? "true" : "false",
		    row->held ? hold_state_name(row->was) : NULL,
		};
		arrays_add(&arrays, values, sizeof values / sizeof *values);
	}
	arrays_write(&arrays, settling->holds + 2);
	add_call(settling, PG_CALL(HOLD_PUT, .values = settling->holds));
}

static void add_exceptions(struct settling *settling)
{
	const struct lane_settlement *settlement = settling->settlement;
	for (size_t i = 0; i < settlement->exception_count; i++) {
		struct sql_in in = SQL_IN(exception_park, exception_shape, &settlement->exceptions[i]);
		add_call(settling, pg_sql_call(&settling->arena, &in));
	}
}

/* Evidence that is there already, because the answer to this very settlement was lost, is rare. */
static enum ibid_code settle(struct pg_store *store, struct settling *settling,
                             struct ibid_err *err)
{
	enum ibid_code code = pg_pool_query(store, settling->calls, settling->count, err);
	if (code != IBID_DUPLICATE || !settling->evidence)
		return code;
	pg_release(settling->calls, settling->count);
	*settling->evidence = PG_CALL(DELIVERY_PUT, .values = settling->deliveries);
	return pg_pool_query(store, settling->calls, settling->count, err);
}

enum ibid_code pg_settle_lane(struct store *base, const struct lane_settlement *settlement,
                              struct ibid_err *err)
{
	struct settling settling = {.settlement = settlement};
	enum { STATEMENTS = 4 }; /* beside one for each exception */
	settling.calls = arena_array(&settling.arena, STATEMENTS + settlement->exception_count,
	                             sizeof *settling.calls);
	if (!settling.calls)
		return no_memory(err);
	add_lane(&settling);
	add_deliveries(&settling);
	end_holds(&settling);
	add_holds(&settling);
	add_exceptions(&settling);
	enum ibid_code code = settling.arena.failed ? no_memory(err)
	                                            : settle(pg_store_of(base), &settling, err);
	pg_release(settling.calls, settling.count);
	arena_release(&settling.arena);
	return code;
}

/* ---- Lists ---------------------------------------------------------------------------------- */

/* Columns before those of the event and its hold. */
enum held_column { HELD_EARLY, HELD_AFTER, HELD_ARRIVED };

static enum ibid_code read_held(struct arena *arena, PGresult *result, struct held_event *rows,
                                struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	for (int i = 0; !code && i < PQntuples(result); i++) {
		struct held_event *held = &rows[i];
		struct hold_row *hold = &held->hold;
		held->early = pg_cell_bool(result, i, HELD_EARLY);
		held->after = held->early ? pg_cell_int(result, i, HELD_AFTER) : 0;
		held->arrived = pg_cell_bool(result, i, HELD_ARRIVED);
		pg_read_row(result, i, &hold_shape, arena, hold);
		pg_read_row(result, i, &event_shape, arena, &held->event);
		hold->event_id = held->event.id;
		hold->held = true;
		hold->was = hold->state;
		code = row_check_words(&hold_shape, hold, "an event that is held", err);
	}
	return code;
}

enum ibid_code pg_list_held(struct store *store, struct arena *arena,
                            const struct lane_lease *lease, struct held_event **ret,
                            size_t *ret_count, struct ibid_err *err)
{
	const char *values[] = {lease->destination, pg_int(arena, lease->lane)};
	struct pg_call call = PG_CALL(HOLD_LIST, .values = values);
	enum ibid_code code = arena->failed ? no_memory(err)
	                                    : pg_pool_query(pg_store_of(store), &call, 1, err);
	size_t count = code ? 0 : (size_t)PQntuples(call.result);
	struct held_event *rows = arena_array(arena, count, sizeof *rows);
	if (!code && rows)
		code = read_held(arena, call.result, rows, err);
	if (!code && arena->failed)
		code = no_memory(err);
	pg_release(&call, 1);
	if (!code) {
		*ret = rows;
		*ret_count = count;
	}
	return code;
}
