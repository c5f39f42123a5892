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
