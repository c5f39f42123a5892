/* SPDX-License-Identifier: Apache-2.0 */
/* run_script.h -- a script as it was read, its prepared statements, kept with the connection that
 * made them, and what it may answer with. */
#ifndef STORE_SQLITE_RUN_SCRIPT_H
#define STORE_SQLITE_RUN_SCRIPT_H

#include "store/script.h"

#include <sqlite3.h>
#include <stdint.h>

struct lite_conn;

struct script {
	uint64_t id;
	struct arena arena; /* everything below */
	const char *file;
	struct script_statements statements;
	struct param_spec *params;
	size_t param_count;
};

void lite_prepared_free_all(struct lite_conn *conn);

/* IBID_FAILED: its columns are not those of an answer. */
IBID_CHECK enum ibid_code lite_answer_check(sqlite3_stmt *stmt, struct ibid_err *err);

#endif
