/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/conn.h"

#include "store/sqlite/functions.h"
#include "store/sqlite/run_script.h"
#include "store/sqlite/wal_vfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Who may do what ------------------------------------------------------------------------ */

static bool reserved(const char *name)
{
	return name && sqlite3_strnicmp(name, "ibid_", 5) == 0;
}

static const char no_transaction_control[] =
    "transaction control is not allowed here: ibid owns the transaction";

/* What is temporary lives as long as the connection, which later commands use too, and its name
 * comes before the real table's. Whatever creates or drops such a thing also writes their schema
 * table; renaming a real one updates it, so that updates are let through. */
static bool makes_temporary(int action, const char *first, const char *database)
{
	switch (action) {
	case SQLITE_CREATE_TEMP_INDEX:
	case SQLITE_CREATE_TEMP_TABLE:
	case SQLITE_CREATE_TEMP_TRIGGER:
	case SQLITE_CREATE_TEMP_VIEW:
	case SQLITE_DROP_TEMP_INDEX:
	case SQLITE_DROP_TEMP_TABLE:
	case SQLITE_DROP_TEMP_TRIGGER:
	case SQLITE_DROP_TEMP_VIEW: return true;
	case SQLITE_ALTER_TABLE: return first && sqlite3_stricmp(first, "temp") == 0;
	case SQLITE_INSERT:
	case SQLITE_DELETE:
	case SQLITE_CREATE_VTABLE:
	case SQLITE_DROP_VTABLE: return database && sqlite3_stricmp(database, "temp") == 0;
	default: return false;
	}
}

/* Why neither a script nor a callback may do this to something that is ours; NULL: it may. */
static const char *refuse_ours(int action, const char *first, const char *second)
{
	switch (action) {
	case SQLITE_INSERT:
	case SQLITE_UPDATE:
	case SQLITE_DELETE:
		return reserved(first) ? "tables named ibid_... are written by ibid only" : NULL;
	case SQLITE_READ:
	case SQLITE_SELECT:
	case SQLITE_FUNCTION:
	case SQLITE_RECURSIVE:
	case SQLITE_SAVEPOINT:
	case SQLITE_ATTACH:
	case SQLITE_DETACH:
	case SQLITE_PRAGMA: return NULL;
	default: /* the rest creates, drops, alters or analyzes something that these name */
		return reserved(first) || reserved(second) ? "names that start with ibid_ are reserved"
		                                           : NULL;
	}
}

/* SQLite itself runs the pragma quick_check, which only reads, where ALTER TABLE adds a column to a
 * table that is STRICT or has a CHECK. */
static const char *refuse_in_script(int action, const char *first)
{
	switch (action) {
	case SQLITE_SAVEPOINT: return no_transaction_control;
	case SQLITE_ATTACH:
	case SQLITE_DETACH: return "ATTACH and DETACH are not allowed here";
	case SQLITE_PRAGMA:
		return first && sqlite3_stricmp(first, "quick_check") == 0 ? NULL
		                                                           : "PRAGMA is not allowed here";
	default: return NULL;
	}
}

static int authorize(void *user, int action, const char *first, const char *second,
                     const char *database, const char *trigger)
{
	struct lite_conn *conn = user;
	const char *why = NULL;
	(void)trigger;
	if (conn->mode == LITE_OURS)
		return SQLITE_OK;
	if (action == SQLITE_TRANSACTION)
		why = no_transaction_control;
	else if (makes_temporary(action, first, database))
		why = "temporary tables, views, triggers and indexes are not allowed here";
	else
		why = refuse_ours(action, first, second);
	if (!why && conn->mode == LITE_SCRIPT)
		why = refuse_in_script(action, first);
	if (why)
		conn->refused = why;
	return why ? SQLITE_DENY : SQLITE_OK;
}

/* INSERT OR ROLLBACK and RAISE(ROLLBACK) end a transaction without asking the authorizer; what a
 * script or callback does after that would commit by itself, statement by statement. */
static int commit_allowed(void *user)
{
	return ((struct lite_conn *)user)->mode != LITE_OURS;
}

static int note_wal(void *user, sqlite3 *db, const char *database, int pages)
{
	struct lite_conn *conn = user;
	(void)db, (void)database;
	atomic_store(conn->wal_pages, pages);
	return SQLITE_OK;
}

/* ---- Opening and closing -------------------------------------------------------------------- */

static int run_pragma(struct lite_conn *conn, enum lite_sql sql)
{
	return sqlite3_exec(conn->db, lite_sql[sql].sql, NULL, NULL, NULL);
}

static int set_up(struct lite_conn *conn, const struct lite_conn_options *options)
{
	sqlite3 *db = conn->db;
	int rc = SQLITE_OK;
	sqlite3_extended_result_codes(db, 1);
	sqlite3_busy_timeout(db, (int)options->busy_ms);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	/* A checkpoint belongs to one connection only, also the one that closing would run. */
	sqlite3_wal_autocheckpoint(db, 0);
	if (options->role != LITE_CHECKPOINTER)
		sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (options->role == LITE_WRITER) {
		sqlite3_set_authorizer(db, authorize, conn);
		sqlite3_commit_hook(db, commit_allowed, conn);
		sqlite3_wal_hook(db, note_wal, conn);
		rc = lite_functions_register_work(conn);
	}
	if (!rc)
		rc = lite_functions_register(db);
	if (!rc)
		rc = run_pragma(conn, LITE_synchronous_set);
	if (!rc && options->role == LITE_WRITER)
		rc = run_pragma(conn, LITE_temp_store_set);
	if (!rc && options->role == LITE_READER)
		rc = run_pragma(conn, LITE_query_only_set);
	return rc;
}

enum ibid_code lite_conn_open(const struct lite_conn_options *options, struct lite_conn **ret,
                              struct ibid_err *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	struct lite_conn *conn = calloc(1, sizeof *conn);
	enum ibid_code code = IBID_OK;
	if (!conn)
		return err_set(err, IBID_NOMEM, "out of memory");
	conn->path = options->path;
	conn->env = options->env;
	conn->wal_pages = options->wal_pages;
	conn->full = options->full;
	conn->hook = options->hook;
	if (options->create)
		flags |= SQLITE_OPEN_CREATE;
	const char *vfs = options->role == LITE_READER ? NULL : lite_wal_vfs();
	int rc = sqlite3_open_v2(options->path, &conn->db, flags, vfs);
	if (!rc)
		rc = set_up(conn, options);
	if (rc) {
		code = lite_fail(conn, rc, err);
	} else if (sqlite3_db_readonly(conn->db, "main") == 1) {
		/* SQLite opens what it may not write for reading only. */
		code = err_set(err, IBID_DENIED, "%s: no permission to write; check its owner and mode",
		               options->path);
	}
	if (code)
		lite_conn_close(conn);
	else
		*ret = conn;
	return code;
}

void lite_conn_close(struct lite_conn *conn)
{
	if (!conn)
		return;
	lite_prepared_free_all(conn);
	for (size_t i = 0; i < LITE_SQL_COUNT; i++)
		sqlite3_finalize(conn->statements[i]);
	/* v2: a callback may have left a statement of its own behind. */
	sqlite3_close_v2(conn->db);
	free(conn);
}

enum ibid_code lite_conn_statement(struct lite_conn *conn, enum lite_sql sql, sqlite3_stmt **ret,
                                   struct ibid_err *err)
{
	if (!conn->statements[sql]) {
		int rc = sqlite3_prepare_v3(conn->db, lite_sql[sql].sql, -1, SQLITE_PREPARE_PERSISTENT,
		                            &conn->statements[sql], NULL);
		if (rc)
			return lite_fail(conn, rc, err);
	}
	*ret = conn->statements[sql];
	return IBID_OK;
}

bool lite_conn_fails(const struct lite_conn *conn, enum hook_kind kind, const char *name)
{
	const struct hook *hook = *conn->hook;
	return hook && hook->at(hook->user, &(struct hook_point){"sqlite", name, kind});
}

int lite_conn_step(struct lite_conn *conn, sqlite3_stmt *stmt, const char *name)
{
	if (lite_conn_fails(conn, HOOK_BEFORE, name))
		return SQLITE_IOERR;
	int rc = sqlite3_step(stmt);
	if ((rc == SQLITE_ROW || rc == SQLITE_DONE) && lite_conn_fails(conn, HOOK_AFTER, name))
		return SQLITE_IOERR;
	return rc;
}

/* ---- What errors mean ----------------------------------------------------------------------- */

enum ibid_code lite_code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED: return IBID_BUSY;
	case SQLITE_FULL: return IBID_FULL;
	case SQLITE_NOMEM: return IBID_NOMEM;
	case SQLITE_READONLY:
	case SQLITE_PERM: return IBID_DENIED;
	case SQLITE_IOERR:
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_CANTOPEN:
	case SQLITE_PROTOCOL:
	case SQLITE_NOLFS: return IBID_IO;
	default: return IBID_FAILED;
	}
}

/* Our own statements are right: a table that is not there is a store that was not prepared. */
static enum ibid_code fail_ours(struct lite_conn *conn, struct ibid_err *err)
{
	const char *message = sqlite3_errmsg(conn->db);
	if (strncmp(message, "no such table: ibid_", 20) == 0)
		return err_set(err, IBID_SCHEMA, "%s has no ibid schema; run ibid init", conn->path);
	return err_set(err, IBID_INTERNAL, "%s: %s", conn->path, message);
}

static enum ibid_code fail_open(struct lite_conn *conn, struct ibid_err *err)
{
	int number = conn->db ? sqlite3_system_errno(conn->db) : 0;
	switch (number) {
	case ENOENT:
		return err_set(err, IBID_NOT_FOUND, "%s: no such file; create the store with ibid init",
		               conn->path);
	case EACCES:
	case EPERM:
	case EROFS:
		return err_set(err, IBID_DENIED,
		               "%s, or its -wal or -shm file: no permission; check owner and mode of the "
		               "files and the directory",
		               conn->path);
	default:
		return err_set(err, IBID_IO, "%s, or its -wal or -shm file, can't be opened (%s)",
		               conn->path, number ? strerror(number) : "unknown cause");
	}
}

static enum ibid_code fail_full(struct lite_conn *conn, struct ibid_err *err)
{
	if (conn->full)
		atomic_store(conn->full, true);
	return err_set(err, IBID_FULL,
	               "%s: no space left on its disk, or a quota or limit is used up; free some",
	               conn->path);
}

/* Growing the shared-memory file reports a full disk as an I/O error, and so does every write that
 * a quota or a limit stops. */
static bool no_space(struct lite_conn *conn, int rc)
{
	if (!conn->db || (rc != SQLITE_IOERR_SHMSIZE && rc != SQLITE_IOERR_WRITE))
		return false;
	int number = sqlite3_system_errno(conn->db);
	return number == ENOSPC || number == EDQUOT || number == EFBIG;
}

enum ibid_code lite_fail(struct lite_conn *conn, int rc, struct ibid_err *err)
{
	const char *message = conn->db ? sqlite3_errmsg(conn->db) : sqlite3_errstr(rc);
	enum ibid_code code = lite_code_of(rc);
	if (no_space(conn, rc))
		return fail_full(conn, err);
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(err, code, "%s is locked by another process; try again", conn->path);
	case SQLITE_FULL: return fail_full(conn, err);
	case SQLITE_NOMEM: return err_set(err, code, "out of memory");
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return err_set(err, code,
		               "%s: no permission to write (%s); check owner and mode of the "
		               "file, its -wal and -shm, and the directory",
		               conn->path, message);
	case SQLITE_CANTOPEN: return fail_open(conn, err);
	case SQLITE_NOTADB:
		return err_set(err, code, "%s is not an SQLite database (or is encrypted)", conn->path);
	case SQLITE_CORRUPT:
		return err_set(err, code, "%s is damaged (%s); restore a backup, or try sqlite3's .recover",
		               conn->path, message);
	case SQLITE_IOERR:
		return err_set(err, code, "%s: reading or writing failed (%s)", conn->path, message);
	default: return fail_ours(conn, err);
	}
}
