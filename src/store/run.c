/* SPDX-License-Identifier: Apache-2.0 */
/* run.c -- from rows to the parameters of a statement, and from its result to rows. */
#define SQL_PARAMS
#include "store/run.h"

#include <assert.h>
#include <string.h>

const struct sql_statement sql_statements[SQL_COUNT] = {
#define SQL_STATEMENT(name, count, clock, demand)                                                  \
	[SQL_##name] = {#name, sql_params_##name, count, clock, demand},
    SQL_STATEMENTS(SQL_STATEMENT)
#undef SQL_STATEMENT
};

static const struct row_column lookup_columns[] = {
    ROW_COLUMN(TEXT, struct lookup, tenant, tenant),
    ROW_COLUMN(TEXT, struct lookup, subject_type, subject_type),
    ROW_COLUMN(TEXT, struct lookup, subject_id, subject_id),
    ROW_COLUMN(TEXT, struct lookup, name, name),
    ROW_COLUMN(UUID, struct lookup, id, id),
    ROW_COLUMN(SIZE, struct lookup, limit, limit),
};
const struct row_shape lookup_shape = ROW_SHAPE(struct lookup, lookup_columns);

bool sql_values(const struct sql_in *in, struct arena *arena, struct sql_value ret[SQL_PARAMS_MAX])
{
	const struct sql_statement *statement = &sql_statements[in->id];
	size_t at = 0;
	assert(statement->count <= SQL_PARAMS_MAX);
	for (size_t i = 0; i < statement->count; i++) {
		const struct row_column *column = row_find_column(in->shape, statement->params[i], &at);
		assert(column); /* the row has a member for each parameter */
		ret[i] = row_value(column, in->row, arena);
	}
	return !arena->failed;
}

enum ibid_code sql_put(struct tx *tx, struct sql_in in, struct ibid_err *err)
{
	return tx->store->ops->put(tx, &in, err);
}

enum ibid_code sql_change(struct store *store, struct sql_in in, int64_t *ret_changed,
                          struct ibid_err *err)
{
	return store->ops->change(store, &in, ret_changed, err);
}

enum ibid_code sql_list(struct store *store, struct sql_in in, struct arena *arena,
                        const struct row_shape *shape, void *ret, size_t *ret_count,
                        struct ibid_err *err)
{
	struct row_list list = {.arena = arena, .shape = shape};
	enum ibid_code code = store->ops->query(store, &in, &list, err);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code) {
		memcpy(ret, &list.items, sizeof list.items);
		*ret_count = list.count;
	}
	return code;
}

enum ibid_code sql_get(struct store *store, struct sql_in in, struct arena *arena,
                       const struct row_shape *shape, void *ret, const char *missing,
                       struct ibid_err *err)
{
	void *rows = NULL;
	size_t count = 0;
	enum ibid_code code = sql_list(store, in, arena, shape, &rows, &count, err);
	if (!code && !count)
		code = err_set(err, IBID_NOT_FOUND, "%s", missing);
	if (!code)
		memcpy(ret, rows, shape->size);
	return code;
}

enum ibid_code row_check_words(const struct row_shape *shape, const void *row, const char *what,
                               struct ibid_err *err)
{
	for (size_t i = 0; i < shape->count; i++) {
		const struct row_column *column = &shape->columns[i];
		if (!row_word_known(column, row))
			return err_set(err, IBID_SCHEMA,
			               "%s has a %s that this version of ibid does not know, of a newer one: "
			               "upgrade ibid, then decide",
			               what, column->name);
	}
	return IBID_OK;
}
