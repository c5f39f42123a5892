/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c -- the lease of a command that is worked on outside any transaction. */
#include "store/postgres/postgres.h"

enum ibid_code pg_renew_lease(struct store *base, const char *tenant, const struct uuid *id,
                              int64_t token, int64_t lease_us, struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[] = {tenant, pg_uuid(&arena, id), pg_int(&arena, token),
	                        pg_int(&arena, lease_us)};
	struct pg_call call = PG_CALL(LEASE_RENEW, .values = values);
	enum ibid_code code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                   : pg_pool_query(pg_store_of(base), &call, 1, err);
	if (!code && !PQntuples(call.result))
		code = err_set(err, IBID_FENCED,
		               "the lease of this command has ended and another worker has taken it over");
	pg_release(&call, 1);
	arena_release(&arena);
	return code;
}
