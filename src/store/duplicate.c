/* SPDX-License-Identifier: Apache-2.0 */
/* duplicate.c -- look at commands that came again. */
#include "store/duplicate.h"

#include "store/run.h"

static const struct row_column columns[] = {
    ROW_COLUMN(TEXT, struct duplicate_row, tenant, tenant, .json = ""),
    ROW_COLUMN(UUID, struct duplicate_row, command_id, command_id, .json = ""),
    ROW_COLUMN(LONG, struct duplicate_row, count, count),
    ROW_COLUMN(TIME_OR_NONE, struct duplicate_row, first_at, first_us),
    ROW_COLUMN(TIME_OR_NONE, struct duplicate_row, last_at, last_us),
    ROW_COLUMN(LONG, struct duplicate_row, unlisted, unlisted, .json = "notListed"),
};
const struct row_shape duplicate_shape = ROW_SHAPE(struct duplicate_row, columns);

static const struct row_column seen_columns[] = {
    ROW_COLUMN(TEXT, struct duplicate_seen_row, tenant, tenant, .json = ""),
    ROW_COLUMN(UUID, struct duplicate_seen_row, command_id, command_id, .json = ""),
    ROW_COLUMN(TIME, struct duplicate_seen_row, at, at_us),
    ROW_COLUMN(TEXT, struct duplicate_seen_row, client, client, .none = NONE_EMPTY),
    ROW_COLUMN(TEXT, struct duplicate_seen_row, actor, actor, .none = NONE_EMPTY),
    ROW_COLUMN(TEXT, struct duplicate_seen_row, decision, decision),
    ROW_COLUMN(HASH, struct duplicate_seen_row, fingerprint, fingerprint),
};
const struct row_shape duplicate_seen_shape = ROW_SHAPE(struct duplicate_seen_row, seen_columns);

enum ibid_code store_get_duplicates(struct store *store, struct arena *arena, const char *tenant,
                                    const struct uuid *command_id, struct duplicate_row *ret,
                                    struct ibid_err *err)
{
	struct lookup of = {.tenant = tenant, .id = *command_id};
	struct duplicate_row row = {.count = 0};
	enum ibid_code code = sql_get(store, SQL_IN(duplicate_get, lookup_shape, &of), arena,
	                              &duplicate_shape, &row, "", err);
	if (code && code != IBID_NOT_FOUND)
		return code;
	*ret = row;
	return IBID_OK;
}

enum ibid_code store_list_duplicates(struct store *store, struct arena *arena, const char *tenant,
                                     const struct uuid *command_id, size_t limit,
                                     struct duplicate_seen_row **ret, size_t *ret_count,
                                     struct ibid_err *err)
{
	struct lookup of = {.tenant = tenant, .id = *command_id, .limit = limit};
	return sql_list(store, SQL_IN(duplicate_seen_list, lookup_shape, &of), arena,
	                &duplicate_seen_shape, ret, ret_count, err);
}
