/* SPDX-License-Identifier: Apache-2.0 */
/* rounding.h -- decimals that a statement would bring into a column, or compare with one, that
 * rounds them. */
#ifndef STORE_SQLITE_ROUNDING_H
#define STORE_SQLITE_ROUNDING_H

#include "store/sqlite/lite.h"
#include "store/sqlite/run_script.h"

/* The columns that a statement reads or updates, as it was prepared. */
struct lite_columns {
	struct arena *arena;
	struct lite_column {
		struct lite_column *next;
		const char *table, *name;
		bool updated;
	} * first;
};
void lite_columns_add(void *columns, const char *table, const char *column, bool updated);

struct lite_rounding {
	const char *table, *column, *param; /* table NULL: there is none */
	const char *at;                     /* of the parameter, in the statement's text */
};

/* The first place where that is certain: a decimal parameter by itself, beside a column's name. */
IBID_CHECK enum ibid_code lite_rounding_find(struct lite_conn *conn, struct arena *arena,
                                             const struct script *script,
                                             const struct script_statement *statement,
                                             const struct lite_columns *columns,
                                             struct lite_rounding *ret, struct ibid_err *err);

/* The line of the first token `size` bytes long that is `name`, in the statement: from 0; -1: none.
 */
int lite_line_of_name(const char *sql, const char *name, size_t size);

/* Lines before `at`. */
int lite_lines_before(const char *sql, const char *at);

#endif
