/* SPDX-License-Identifier: Apache-2.0 */
/* run.h -- run an ordinary statement of src/store/sql on either engine.
 *
 * A statement names its parameters (`:tenant`); they are taken from the members of a row that its
 * shape calls so. An ordinary verb is one call:
 *
 *     return sql_put(tx, SQL_IN(pause_put, pause_shape, row), err); */
#ifndef STORE_RUN_H
#define STORE_RUN_H

#include "store/row.h"
#include "store/sql_ids.h"
#include "store/store.h"

enum sql_id {
#define SQL_ID(name, ...) SQL_##name,
	SQL_STATEMENTS(SQL_ID)
#undef SQL_ID
	    SQL_COUNT
};

enum { SQL_PARAMS_MAX = 32 };

struct sql_statement {
	const char *name;
	const char *const *params;
	size_t count;
	bool clock;         /* SQLite: the time is one more */
	const char *demand; /* why a run that changes no row is refused; NULL: it is not */
};
extern const struct sql_statement sql_statements[SQL_COUNT];

/* A statement and the row that its parameters come from. */
struct sql_in {
	enum sql_id id;
	const struct row_shape *shape;
	const void *row;
};
#define SQL_IN(statement, of_row, from)                                                            \
	((struct sql_in){.id = SQL_##statement, .shape = &(of_row), .row = (from)})

/* The parameters in their order; false without memory. What they point to lives in the row or in
 * the arena. */
IBID_CHECK bool sql_values(const struct sql_in *in, struct arena *arena,
                           struct sql_value ret[SQL_PARAMS_MAX]);

/* In an open transaction: at once, or together with its commit. A statement that demands a row and
 * changes none is IBID_RETRY, from here or from commit. */
IBID_CHECK enum ibid_code sql_put(struct tx *tx, struct sql_in in, struct ibid_err *err);

/* In a transaction of its own. */
IBID_CHECK enum ibid_code sql_change(struct store *store, struct sql_in in, int64_t *ret_changed,
                                     struct ibid_err *err);

/* The rows, as an array of the shape's rows in the arena: `ret` is the address of its pointer. */
IBID_CHECK enum ibid_code sql_list(struct store *store, struct sql_in in, struct arena *arena,
                                   const struct row_shape *shape, void *ret, size_t *ret_count,
                                   struct ibid_err *err);

/* The first row. IBID_NOT_FOUND with the text `missing` when there is none. */
IBID_CHECK enum ibid_code sql_get(struct store *store, struct sql_in in, struct arena *arena,
                                  const struct row_shape *shape, void *ret, const char *missing,
                                  struct ibid_err *err);

/* What many look-ups name. `lookup_shape` has a column for each member. */
struct lookup {
	const char *tenant, *subject_type, *subject_id, *name;
	struct uuid id; /* all zero: none */
	size_t limit;
};
extern const struct row_shape lookup_shape;

/* Refuse to decide on a row that holds a word of a newer schema: IBID_SCHEMA. `what` is "an
 * exception". */
IBID_CHECK enum ibid_code row_check_words(const struct row_shape *shape, const void *row,
                                          const char *what, struct ibid_err *err);

#endif
