/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c -- how the ledger stands, in one round trip. */
#include "store/postgres/postgres.h"

enum { CALL_LEDGER, CALL_EXCEPTIONS, CALL_COUNT };

static struct measurement read_ledger(const PGresult *result)
{
	return (struct measurement){
	    .in_progress = pg_cell_int(result, 0, 0),
	    .stale = pg_cell_int(result, 0, 1),
	    .unknown = pg_cell_int(result, 0, 2),
	    .commands = pg_cell_int(result, 0, 3),
	};
}

static void read_exceptions(struct arena *arena, const PGresult *result, struct measurement *ret)
{
	size_t count = (size_t)PQntuples(result);
	ret->owners = count ? arena_array(arena, count, sizeof *ret->owners) : NULL;
	for (size_t i = 0; ret->owners && i < count; i++) {
		struct owner_count *owner = &ret->owners[i];
		owner->owner = pg_cell_text(arena, result, (int)i, 0);
		owner->open = pg_cell_int(result, (int)i, 1);
		owner->overdue = pg_cell_int(result, (int)i, 2);
		ret->open += owner->open;
		ret->overdue += owner->overdue;
		ret->owner_count++;
	}
}

enum ibid_code pg_measure(struct store *base, struct arena *arena, struct measurement *ret,
                          struct ibid_err *err)
{
	struct pg_call calls[CALL_COUNT] = {
	    [CALL_LEDGER] = PG_CALL(LEDGER_MEASURE),
	    [CALL_EXCEPTIONS] = PG_CALL(EXCEPTION_MEASURE),
	};
	enum ibid_code code = pg_pool_query(pg_store_of(base), calls, CALL_COUNT, err);
	struct measurement got = {0};
	if (!code) {
		got = read_ledger(calls[CALL_LEDGER].result);
		read_exceptions(arena, calls[CALL_EXCEPTIONS].result, &got);
	}
	pg_release(calls, CALL_COUNT);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code)
		*ret = got;
	return code;
}
