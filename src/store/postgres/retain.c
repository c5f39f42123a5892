/* SPDX-License-Identifier: Apache-2.0 */
/* retain.c -- remove what has had its time: rows step by step, history by the month. */
#include "store/postgres/postgres.h"

#include <string.h>

enum { MONTHS_AHEAD = 3 };

enum { STEP_BEGIN, STEP_RETAIN, STEP_END, STEP_COUNT };

static void read_step(struct arena *arena, const PGresult *result, struct retention_cursor *cursor,
                      struct retention_count *ret)
{
	cursor->tenant = pg_cell_text(arena, result, 0, 0);
	cursor->id = pg_cell_uuid(result, 0, 1);
	cursor->done = !cursor->tenant;
	ret->tombstones += pg_cell_int(result, 0, 2);
	ret->commands += pg_cell_int(result, 0, 3);
	ret->answers += pg_cell_int(result, 0, 4);
	ret->evidence += pg_cell_int(result, 0, 5);
	ret->duplicates += pg_cell_int(result, 0, 6);
	ret->payloads += pg_cell_int(result, 0, 7);
}

enum ibid_code pg_retain_commands(struct store *base, struct arena *arena,
                                  const struct retention *retention,
                                  struct retention_cursor *cursor, struct retention_count *ret,
                                  struct ibid_err *err)
{
	const char *values[] = {
	    cursor->tenant ? cursor->tenant : "",
	    pg_uuid(arena, &cursor->id),
	    pg_uuid(arena, &retention->before),
	    pg_time(arena, retention->now_us),
	    retention->audit_us,
	    pg_int(arena, (int64_t)retention->batch),
	};
	struct pg_call calls[STEP_COUNT] = {
	    [STEP_BEGIN] = PG_CALL(BEGIN),
	    [STEP_RETAIN] = PG_CALL(RETAIN_COMMANDS, .values = values),
	    [STEP_END] = retention->dry_run ? PG_CALL(ROLLBACK) : PG_CALL(COMMIT),
	};
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = pg_pool_query(pg_store_of(base), calls, STEP_COUNT, err);
	if (!code)
		read_step(arena, calls[STEP_RETAIN].result, cursor, ret);
	pg_release(calls, STEP_COUNT);
	return code == IBID_OK && arena->failed ? err_set(err, IBID_NOMEM, "out of memory") : code;
}

/* Audit entries may only go when every operation has said how long it needs them. */
static enum ibid_code ask_known(struct pg_store *store, const struct retention *retention,
                                bool *ret, struct ibid_err *err)
{
	const char *values[] = {retention->audit_us};
	struct pg_call call = PG_CALL(RETAIN_KNOWN, .values = values);
	enum ibid_code code = pg_pool_query(store, &call, 1, err);
	if (!code)
		*ret = pg_cell_bool(call.result, 0, 0);
	pg_release(&call, 1);
	return code;
}

static enum ibid_code make_partitions(struct pg_store *store, int64_t now_us, struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[] = {pg_int(&arena, MONTHS_AHEAD), pg_time(&arena, now_us)};
	struct pg_call call = PG_CALL(RETAIN_MAKE, .values = values);
	enum ibid_code code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                   : pg_pool_query(store, &call, 1, err);
	pg_release(&call, 1);
	arena_release(&arena);
	return code;
}

static void add_dropped(const PGresult *result, struct retention_count *ret)
{
	for (int row = 0; row < PQntuples(result); row++) {
		const char *kind = pg_cell(result, row, 0);
		int64_t removed = pg_cell_int(result, row, 1);
		if (strcmp(kind, "audit") == 0)
			ret->audit += removed;
	}
}

static enum ibid_code drop_partition(struct pg_store *store, const struct retention *retention,
                                     bool audit, struct retention_count *ret, bool *ret_more,
                                     struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[] = {
	    pg_time(&arena, retention->now_us),
	    audit ? pg_int(&arena, retention->audit_max_us) : NULL,
	    retention->dry_run ? "true" : "false",
	};
	struct pg_call call = PG_CALL(RETAIN_DROP, .values = values);
	enum ibid_code code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                   : pg_pool_query(store, &call, 1, err);
	if (!code) {
		add_dropped(call.result, ret);
		*ret_more = !retention->dry_run && PQntuples(call.result) > 0;
	}
	pg_release(&call, 1);
	arena_release(&arena);
	return code;
}

enum ibid_code pg_retain_history(struct store *base, const struct retention *retention,
                                 struct retention_count *ret, bool *ret_more, struct ibid_err *err)
{
	struct pg_store *store = pg_store_of(base);
	bool known = false;
	enum ibid_code code = retention->dry_run ? IBID_OK
	                                         : make_partitions(store, retention->now_us, err);
	if (!code)
		code = ask_known(store, retention, &known, err);
	return code ? code : drop_partition(store, retention, known, ret, ret_more, err);
}
