/* SPDX-License-Identifier: Apache-2.0 */
/* erasure.c -- look at what was erased. */
#include "store/erasure.h"

#include "store/run.h"

#define ERASURE(kind, column, member, ...)                                                         \
	ROW_COLUMN(kind, struct erasure_row, column, member, __VA_ARGS__)
static const struct row_column columns[] = {ERASURE(TEXT, tenant, tenant),
                                            ERASURE(UUID, id, id, .json = "erasure"),
                                            ERASURE(TEXT, by, by),
                                            ERASURE(TEXT, reason, reason),
                                            ERASURE(JSON, selection, selection),
                                            ERASURE(TIME, at, at_us),
                                            ERASURE(TIME_OR_NONE, finished_at, finished_us),
#define ERASURE_COUNT(name, meaning) ERASURE(LONG, name, count.name),
                                            ERASURE_COUNTS(ERASURE_COUNT)
#undef ERASURE_COUNT
};
const struct row_shape erasure_shape = ROW_SHAPE(struct erasure_row, columns);

enum ibid_code store_list_erasures(struct store *store, struct arena *arena, const char *tenant,
                                   size_t limit, struct erasure_row **ret, size_t *ret_count,
                                   struct ibid_err *err)
{
	struct lookup of = {.tenant = tenant, .limit = limit};
	return sql_list(store, SQL_IN(erasure_list, lookup_shape, &of), arena, &erasure_shape, ret,
	                ret_count, err);
}
