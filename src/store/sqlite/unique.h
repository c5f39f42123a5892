/* SPDX-License-Identifier: Apache-2.0 */
/* unique.h -- which unique index a violation hit: SQLite's message names columns, a contract names
 * the index. */
#ifndef STORE_SQLITE_UNIQUE_H
#define STORE_SQLITE_UNIQUE_H

#include "store/sqlite/run.h"

/* `message` is what SQLite said about a unique or primary-key violation. The index's name, or
 * several separated by commas: see unique_by_columns.sql. NULL when none can be named (an INTEGER
 * PRIMARY KEY has no index). */
enum ibid_code lite_unique_name(struct lite_conn *conn, struct arena *arena, const char *message,
                                const char **ret, struct ibid_err *err);

#endif
