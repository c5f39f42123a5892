/* SPDX-License-Identifier: Apache-2.0 */
/* work.h -- functions that handlers call in SQL, for the command that runs on their connection.
 *
 * Each gets the open transaction, may run our own statements, and either appends its answer
 * (nothing: SQL NULL) or fails, which dooms the transaction (L3). */
#ifndef STORE_SQLITE_WORK_H
#define STORE_SQLITE_WORK_H

#include "base/str.h"
#include "store/sqlite/lite.h"

enum { NAME_BYTES_MAX = 255 }; /* of types, ids, keys and other names */

struct lite_work_args {
	int count;
	sqlite3_value **values;
};
typedef enum ibid_code lite_work_fn(struct lite_tx *tx, struct lite_work_args args,
                                    struct str *answer, struct ibid_err *err);

lite_work_fn lite_post;                                                    /* journal.c */
lite_work_fn lite_move;                                                    /* transition.c */
lite_work_fn lite_link_reference, lite_find_reference, lite_find_external; /* reference.c */

/* ibid_define_machine, for schema files: transition.c */
void lite_define_machine(sqlite3_context *context, int count, sqlite3_value **values);

/* NULL for anything that is not text or an integer. */
const char *lite_work_text(sqlite3_value *value);

/* SQLite takes any bytes for text; what is told to others is not any bytes. NULL passes. */
IBID_CHECK enum ibid_code lite_work_check(sqlite3_value *value, const char *what,
                                          struct ibid_err *err);

/* Reject the command for `reason` unless the value is a text of 1 to NAME_BYTES_MAX bytes. */
IBID_CHECK enum ibid_code lite_work_name(struct lite_tx *tx, sqlite3_value *value, const char *what,
                                         const char *reason, struct ibid_err *err);

#endif
