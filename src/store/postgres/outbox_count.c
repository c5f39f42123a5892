/* SPDX-License-Identifier: Apache-2.0 */
/* outbox_count.c -- how many events wait for each destination. What is kept, what is exact and what
 * lags is told in migrations/002_outbox_count.sql. */
#include "store/outbox.h"
#include "store/postgres/postgres.h"

enum ibid_code pg_count_outbox(struct store *base, size_t limit, bool *ret_more,
                               struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[] = {pg_int(&arena, OUTBOX_LANES),
	                        pg_int(&arena, limit ? (int64_t)limit : 1)};
	struct pg_call call = PG_CALL(OUTBOX_COUNT, .values = values);
	enum ibid_code code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                   : pg_pool_query(pg_store_of(base), &call, 1, err);
	if (!code)
		*ret_more = pg_cell_bool(call.result, 0, 0);
	pg_release(&call, 1);
	arena_release(&arena);
	return code;
}

static void read_backlog(struct arena *arena, const PGresult *result, int row, void *ret)
{
	*(struct backlog_row *)ret = (struct backlog_row){
	    .destination = pg_cell_text(arena, result, row, 0),
	    .written = pg_cell_int(result, row, 1),
	    .delivered = pg_cell_int(result, row, 2),
	    .backlog = pg_cell_int(result, row, 3),
	    .held = pg_cell_int(result, row, 4),
	    .failed = pg_cell_int(result, row, 5),
	    .parked = pg_cell_int(result, row, 6),
	    .oldest_us = pg_cell_int(result, row, 7),
	    .leased = pg_cell_int(result, row, 8),
	    .moved_us = pg_cell_int(result, row, 9),
	};
}

enum ibid_code pg_measure_outbox(struct store *store, struct arena *arena, struct backlog_row **ret,
                                 size_t *ret_count, struct ibid_err *err)
{
	static const struct pg_reader reader = {read_backlog, sizeof(struct backlog_row)};
	const char *values[] = {pg_int(arena, OUTBOX_LANES), pg_int(arena, BACKLOG_NEAR)};
	return pg_list(store, arena, PG_CALL(OUTBOX_MEASURE, .values = values), &reader, (void **)ret,
	               ret_count, err);
}
