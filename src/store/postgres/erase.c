/* SPDX-License-Identifier: Apache-2.0 */
/* erase.c -- forget on request: a step is one call of a function, in one transaction. */
#include "store/postgres/postgres.h"

enum { STEP_BEGIN, STEP_ERASE, STEP_END, STEP_COUNT };

static void read_step(const PGresult *result, struct erasure_progress *ret)
{
	int column = 2;
	ret->id = pg_cell_uuid(result, 0, 0);
	ret->done = pg_cell_bool(result, 0, 1);
#define ADD_COUNT(name, meaning) ret->count.name += pg_cell_int(result, 0, column++);
	ERASURE_COUNTS(ADD_COUNT)
#undef ADD_COUNT
	ret->left += pg_cell_int(result, 0, column);
}

enum ibid_code pg_erase_commands(struct store *base, const struct erasure *erasure,
                                 struct erasure_progress *progress, struct ibid_err *err)
{
	struct arena arena = {0};
	const struct uuid *only = erasure->command_id;
	struct uuid after = only ? uuid_before(*only) : progress->id;
	const char *values[] = {
	    pg_uuid(&arena, &erasure->id),
	    erasure->tenant,
	    pg_uuid(&arena, &after),
	    only ? pg_uuid(&arena, only) : NULL,
	    erasure->resource_type,
	    erasure->resource_id,
	    erasure->actor,
	    pg_int(&arena, (int64_t)erasure->batch),
	    erasure->by,
	    erasure->reason,
	    erasure->selection,
	    pg_time(&arena, erasure->now_us),
	};
	struct pg_call calls[STEP_COUNT] = {
	    [STEP_BEGIN] = PG_CALL(BEGIN),
	    [STEP_ERASE] = PG_CALL(ERASE_COMMANDS, .values = values),
	    [STEP_END] = erasure->dry_run ? PG_CALL(ROLLBACK) : PG_CALL(COMMIT),
	};
	enum ibid_code code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                   : pg_pool_query(pg_store_of(base), calls, STEP_COUNT, err);
	if (!code)
		read_step(calls[STEP_ERASE].result, progress);
	pg_release(calls, STEP_COUNT);
	arena_release(&arena);
	return code;
}

static void read_row(struct arena *arena, const PGresult *result, int row, struct erasure_row *ret)
{
	int column = 7;
	*ret = (struct erasure_row){
	    .tenant = pg_cell_text(arena, result, row, 0),
	    .id = pg_cell_uuid(result, row, 1),
	    .by = pg_cell_text(arena, result, row, 2),
	    .reason = pg_cell_text(arena, result, row, 3),
	    .selection = pg_cell_text(arena, result, row, 4),
	    .at_us = pg_cell_int(result, row, 5),
	    .finished_us = pg_cell_int(result, row, 6),
	};
#define READ_COUNT(name, meaning) ret->count.name = pg_cell_int(result, row, column++);
	ERASURE_COUNTS(READ_COUNT)
#undef READ_COUNT
}

enum ibid_code pg_list_erasures(struct store *base, struct arena *arena, const char *tenant,
                                size_t limit, struct erasure_row **ret, size_t *ret_count,
                                struct ibid_err *err)
{
	const char *values[] = {tenant, pg_int(arena, (int64_t)limit)};
	struct pg_call call = PG_CALL(ERASURE_LIST, .values = values);
	enum ibid_code code = arena->failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                    : pg_pool_query(pg_store_of(base), &call, 1, err);
	size_t count = code ? 0 : (size_t)PQntuples(call.result);
	struct erasure_row *rows = count ? arena_array(arena, count, sizeof *rows) : NULL;
	for (size_t i = 0; rows && i < count; i++)
		read_row(arena, call.result, (int)i, &rows[i]);
	pg_release(&call, 1);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code) {
		*ret = rows;
		*ret_count = count;
	}
	return code;
}
