/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c -- what is paused, by whom and why. */
#include "store/pause.h"

#include "store/run.h"

WORDS_DEFINE(pause_kind, pause_kind, PAUSE_KINDS);
WORDS_DEFINE(pause_source, pause_source, PAUSE_SOURCES);

static const struct row_column columns[] = {
    ROW_COLUMN(WORD, struct pause_row, kind, kind, .words = &pause_kind_words),
    ROW_COLUMN(TEXT, struct pause_row, tenant, tenant, .none = NONE_EMPTY, .inside = true),
    ROW_COLUMN(TEXT, struct pause_row, name, name, .none = NONE_EMPTY),
    ROW_COLUMN(WORD, struct pause_row, source, source, .words = &pause_source_words),
    ROW_COLUMN(TEXT, struct pause_row, paused_by, by, .json = "by"),
    ROW_COLUMN(TEXT, struct pause_row, reason, reason),
    ROW_COLUMN(TIME, struct pause_row, since, since_us),
    ROW_COLUMN(TEXT, struct pause_row, item_tenant, item_tenant, .json = ""),
};
const struct row_shape pause_shape = ROW_SHAPE(struct pause_row, columns);

enum ibid_code store_put_pause(struct tx *tx, const struct pause_row *row, struct ibid_err *err)
{
	return sql_put(tx, SQL_IN(pause_put, pause_shape, row), err);
}

enum ibid_code store_end_pause(struct tx *tx, const struct pause_row *row, struct ibid_err *err)
{
	return sql_put(tx, SQL_IN(pause_end, pause_shape, row), err);
}

enum ibid_code store_list_pauses(struct store *store, struct arena *arena, const char *tenant,
                                 struct pause_row **ret, size_t *ret_count, struct ibid_err *err)
{
	struct lookup of = {.tenant = tenant};
	return sql_list(store, SQL_IN(pause_list, lookup_shape, &of), arena, &pause_shape, ret,
	                ret_count, err);
}
