/* SPDX-License-Identifier: Apache-2.0 */
/* conn.h -- one connection: how it is opened, who may do what on it, and what its errors mean.
 *
 * A connection is used by one thread at a time. Its mode says whose statements run now; the
 * authorizer and the commit hook are installed once and consult it (setting an authorizer anew
 * would expire every prepared statement). Only our own statements can end a transaction. */
#ifndef STORE_SQLITE_CONN_H
#define STORE_SQLITE_CONN_H

#include "base/env.h"
#include "base/err.h"
#include "store/hook.h"
#include "store/sqlite/sql.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>

enum lite_role {
	LITE_WRITER,
	LITE_READER,       /* only looks */
	LITE_CHECKPOINTER, /* the only one that moves the WAL into the file */
};

enum lite_mode {
	LITE_OURS,   /* anything */
	LITE_SCRIPT, /* a user's script or schema file: the most is refused */
	LITE_LENT,   /* a callback has the handle: no transaction control, no ibid_ or temp objects */
};

struct lite_prepared; /* a script's statements: see run_script.c */
struct lite_tx;

struct lite_conn {
	sqlite3 *db;
	const char *path;
	struct env *env; /* its clock */
	enum lite_mode mode;
	const char *refused; /* what the authorizer refused last */
	sqlite3_stmt *statements[LITE_SQL_COUNT];
	struct lite_prepared *scripts;
	struct lite_tx *tx;             /* for ibid_emit and ibid_reject; NULL: none */
	_Atomic int *wal_pages;         /* told after each commit */
	_Atomic bool *full;             /* told when there was no room to write; NULL: nobody is */
	const struct hook *const *hook; /* the store's */
};

struct lite_conn_options {
	const char *path; /* absolute; lives as long as the connection */
	enum lite_role role;
	struct env *env;
	bool create;
	unsigned busy_ms;
	_Atomic int *wal_pages;         /* LITE_WRITER */
	_Atomic bool *full;             /* LITE_WRITER */
	const struct hook *const *hook; /* the store's; it outlives the connection's statements */
};

IBID_CHECK enum ibid_code lite_conn_open(const struct lite_conn_options *options,
                                         struct lite_conn **ret, struct ibid_err *err);
void lite_conn_close(struct lite_conn *conn); /* takes NULL */

/* The statement, prepared once per connection. */
IBID_CHECK enum ibid_code lite_conn_statement(struct lite_conn *conn, enum lite_sql sql,
                                              sqlite3_stmt **ret, struct ibid_err *err);

/* The first step of a statement, which has this name, past the store's hook. */
int lite_conn_step(struct lite_conn *conn, sqlite3_stmt *stmt, const char *name);

/* Does the hook have the statement fail here? */
bool lite_conn_fails(const struct lite_conn *conn, enum hook_kind kind, const char *name);

/* What an SQLite result code means for the caller, with a sentence. Never IBID_OK. */
enum ibid_code lite_fail(struct lite_conn *conn, int rc, struct ibid_err *err);

/* The code alone. `rc` may be extended. IBID_FAILED: the statement itself is wrong or was refused.
 */
enum ibid_code lite_code_of(int rc);

#endif
