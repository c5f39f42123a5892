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

enum ibid_code pg_measure_outbox(struct store *store, struct arena *arena, struct backlog_row **ret,
                                 size_t *ret_count, struct ibid_err *err)
{
	const char *values[] = {pg_int(arena, OUTBOX_LANES), pg_int(arena, BACKLOG_NEAR)};
	struct row_list rows = {.arena = arena, .shape = &backlog_shape};
	enum ibid_code code = pg_list(store, PG_CALL(OUTBOX_MEASURE, .values = values), &rows, err);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}

enum ibid_code pg_list_outbox(struct store *store, struct arena *arena,
                              const struct outbox_filter *filter, struct outbox_row **ret,
                              size_t *ret_count, struct ibid_err *err)
{
	int64_t most = filter->limit > INT32_MAX ? INT32_MAX : (int64_t)filter->limit;
	const char *values[] = {
	    filter->tenant,
	    filter->destination,
	    filter->state < 0 ? NULL : outbox_state_name((enum outbox_state)filter->state),
	    filter->type,
	    filter->aggregate_type,
	    filter->aggregate_id,
	    filter->after ? pg_uuid(arena, filter->after) : NULL,
	    filter->after_destination,
	    pg_int(arena, most),
	};
	struct row_list rows = {.arena = arena, .shape = &outbox_shape};
	enum ibid_code code = pg_list(store, PG_CALL(OUTBOX_LIST, .values = values), &rows, err);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
