/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.c -- a command in a transaction that the caller owns, on the caller's connection.
 *
 * Nothing of ours stays on the connection between two calls: no statement, no function, no hook, no
 * setting. What a call writes stands behind a savepoint until it has succeeded. A command that is
 * begun leaves a row whose deferred foreign key nothing satisfies, so that the database refuses the
 * commit until the command is finished; that needs `foreign_keys`, which can't be changed inside a
 * transaction. The writer's gate is not entered: the file's lock arbitrates, as between processes.
 */
#include "store/run.h"
#include "store/sqlite/lite.h"
#include "store/sqlite/wal_vfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct lite_adopted {
	struct tx base;
	struct lite_store *store;
	sqlite3 *db; /* the caller's */
};

/* ---- Whose transaction it is ---------------------------------------------------------------- */

static enum ibid_code check_transaction(sqlite3 *db, struct ibid_err *err)
{
	if (sqlite3_get_autocommit(db))
		return err_set(err, IBID_MISUSE,
		               "no transaction is open on the connection: run `begin immediate` first");
	return IBID_OK;
}

static enum ibid_code check_foreign_keys(sqlite3 *db, struct ibid_err *err)
{
	int on = 0;
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, -1, &on);
	if (on)
		return IBID_OK;
	return err_set(
	    err, IBID_MISUSE,
	    "the connection does not enforce foreign keys, so an unfinished command could be "
	    "committed: run `pragma foreign_keys = on` before the transaction");
}

/* By device and inode: a file has many names. */
static enum ibid_code check_file(struct lite_store *store, sqlite3 *db, struct ibid_err *err)
{
	const char *name = sqlite3_db_filename(db, "main");
	struct stat theirs, ours;
	int moved = 0;
	enum ibid_code code = lite_file_check(store, err);
	if (code)
		return code;
	if (stat(store->path, &ours) != 0)
		return err_set(err, IBID_IO, "%s: %s", store->path, strerror(errno));
	sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
	if (moved)
		return err_set(err, IBID_MISUSE,
		               "%s was deleted, renamed or replaced since the connection was opened: open "
		               "another one",
		               name ? name : store->path);
	if (name && *name && stat(name, &theirs) == 0 && theirs.st_dev == ours.st_dev &&
	    theirs.st_ino == ours.st_ino)
		return IBID_OK;
	return err_set(err, IBID_MISUSE, "the connection's main database is %s, not the store %s",
	               name && *name ? name : "not a file", store->path);
}

enum ibid_code lite_adopt(struct store *base, void *connection, struct tx **ret,
                          struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	if (!connection)
		return err_set(err, IBID_MISUSE, "no connection was given");
	enum ibid_code code = check_transaction(connection, err);
	if (!code)
		code = check_foreign_keys(connection, err);
	if (!code)
		code = check_file(store, connection, err);
	if (code)
		return code;
	struct lite_adopted *tx = calloc(1, sizeof *tx);
	if (!tx)
		return err_set(err, IBID_NOMEM, "out of memory");
	*tx = (struct lite_adopted){{base}, store, connection};
	*ret = &tx->base;
	return IBID_OK;
}

void lite_release_adopted(struct tx **tx)
{
	free(*tx);
	*tx = NULL;
}

/* ---- One call ------------------------------------------------------------------------------- */

/* The caller's connection as our statements know one, for the time of a call. */
struct visit {
	struct lite_conn conn;
	struct lite_tx tx;
	sqlite3_int64 last_rowid; /* of the caller's own inserts */
};

static void visit_init(struct visit *visit, const struct lite_adopted *adopted)
{
	*visit = (struct visit){
	    .conn = {.db = adopted->db,
	             .path = adopted->store->path,
	             .env = adopted->store->env,
	             .mode = LITE_OURS,
	             .hook = &adopted->store->base.hook},
	    .tx = {.base = {adopted->base.store}, .store = adopted->store},
	    .last_rowid = sqlite3_last_insert_rowid(adopted->db),
	};
	visit->tx.conn = &visit->conn;
}

static void visit_release(struct visit *visit)
{
	for (size_t i = 0; i < LITE_SQL_COUNT; i++)
		sqlite3_finalize(visit->conn.statements[i]);
	sqlite3_set_last_insert_rowid(visit->conn.db, visit->last_rowid);
	arena_release(&visit->tx.arena);
}

/* What an error means to whoever owns the transaction; `rc` is SQLite's last word. */
static enum ibid_code explain(int rc, const struct visit *visit, enum ibid_code code,
                              struct ibid_err *err)
{
	bool ours = code == IBID_BUSY || code == IBID_INTERNAL;
	if (sqlite3_get_autocommit(visit->conn.db)) {
		char why[sizeof err->text];
		memcpy(why, err->text, sizeof why);
		return err_set(err, IBID_RETRY,
		               "SQLite has rolled your transaction back: run it again (%.400s)", why);
	}
	if (ours && rc == SQLITE_BUSY_SNAPSHOT)
		return err_set(err, IBID_RETRY,
		               "others have written since your transaction first read: roll it back and "
		               "run it again; `begin immediate` avoids this");
	if (ours && ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED))
		return err_set(err, IBID_RETRY,
		               "%s is locked by others: roll your transaction back and run it again",
		               visit->conn.path);
	if (ours && (rc & 0xff) == SQLITE_INTERRUPT)
		return err_set(err, IBID_RETRY, "interrupted: roll your transaction back and run it again");
	if (ours && (rc & 0xff) == SQLITE_AUTH)
		return err_set(err, IBID_DENIED,
		               "the connection's authorizer refuses what ibid does: let it read and write "
		               "tables named ibid_..., and use savepoints");
	return code;
}

/* True: back to where the call began. False: an interrupt kept it from that, or all is rolled back.
 */
static bool undo(struct visit *visit)
{
	struct ibid_err ignored;
	if (sqlite3_get_autocommit(visit->conn.db) ||
	    lite_do(&visit->conn, LITE_adopt_undo, &ignored) != IBID_OK)
		return false;
	(void)lite_do(&visit->conn, LITE_adopt_keep, &ignored);
	return true;
}

/* After a failure the caller's transaction is as it was. Where only the savepoint could be neither
 * released nor undone, everything is written: it ends with the transaction. */
static enum ibid_code settle(struct visit *visit, enum ibid_code code, struct ibid_err *err)
{
	bool written = !code;
	if (written)
		code = lite_do(&visit->conn, LITE_adopt_keep, err);
	if (!code)
		return IBID_OK;
	code = explain(sqlite3_extended_errcode(visit->conn.db), visit, code, err);
	if (undo(visit) || !written || sqlite3_get_autocommit(visit->conn.db))
		return code;
	*err = (struct ibid_err){.code = IBID_OK};
	return IBID_OK;
}

/* A temporary table stands before ours of the same name: what is written to it is gone with the
 * connection, and the key would run again (I2). */
static enum ibid_code check_shadows(sqlite3 *db, struct ibid_err *err)
{
	static const char *const tables[] = {
	    "ibid_command",   "ibid_open_command", "ibid_answer",   "ibid_audit",   "ibid_event",
	    "ibid_aggregate", "ibid_event_key",    "ibid_evidence", "ibid_payload",
	};
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		if (sqlite3_table_column_metadata(db, "temp", tables[i], NULL, NULL, NULL, NULL, NULL,
		                                  NULL) == SQLITE_OK)
			return err_set(err, IBID_MISUSE,
			               "the connection has a temporary table %s, which hides the store's",
			               tables[i]);
	return IBID_OK;
}

/* A checkpoint of the caller's own does not begin under the writer lock, as ibid's do (V6 in
 * wal_vfs.c). */
static enum ibid_code check_checkpoints(struct visit *visit, struct ibid_err *err)
{
	int64_t pages = 0;
	if (sqlite3_libversion_number() >= LITE_VERSION_SAFE)
		return IBID_OK;
	enum ibid_code code = lite_number(&visit->conn, LITE_wal_autocheckpoint_get, &pages, err);
	if (code)
		return explain(sqlite3_extended_errcode(visit->conn.db), visit, code, err);
	if (!pages)
		return IBID_OK;
	return err_set(
	    err, IBID_MISUSE,
	    "the connection checkpoints the WAL, which can lose commits before SQLite 3.51.3 "
	    "(this is %s): run `pragma wal_autocheckpoint = 0` on it, ibid moves the WAL",
	    sqlite3_libversion());
}

static enum ibid_code mark(struct visit *visit, struct ibid_err *err)
{
	if (check_shadows(visit->conn.db, err))
		return err->code;
	enum ibid_code code = lite_do(&visit->conn, LITE_adopt_mark, err);
	return code ? explain(sqlite3_extended_errcode(visit->conn.db), visit, code, err) : IBID_OK;
}

/* ---- Begin ---------------------------------------------------------------------------------- */

/* Put or take the note that refuses the commit: put first and taken last, so that what is half
 * written can't be committed even where an interrupt keeps the savepoint from undoing it. */
static enum ibid_code note(struct lite_conn *conn, enum lite_sql sql, const struct command_row *row,
                           struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, sql, &run, err);
	lite_bind_text(&run, row->identity.tenant);
	lite_bind_uuid(&run, &row->id);
	return lite_conclude(&run, code, err);
}

static enum ibid_code put_payload(struct visit *visit, const struct payload_row *row,
                                  struct ibid_err *err)
{
	struct sql_in in = payload_statement(row);
	return lite_put(&visit->tx.base, &in, err);
}

static enum ibid_code write_plan(struct visit *visit, const struct plan *plan,
                                 const struct command_row *found, struct ibid_err *err)
{
	enum ibid_code code;
	switch (plan->verdict) {
	case VERDICT_RUN:
	case VERDICT_RUN_ANEW:
		code = plan->row.state == COMMAND_IN_PROGRESS
		           ? note(&visit->conn, LITE_open_command_put, &plan->row, err)
		           : IBID_OK;
		if (!code)
			code = lite_put_command(&visit->tx.base, &plan->row, found, err);
		if (!code && plan->has_payload)
			code = put_payload(visit, &plan->payload, err);
		return code;
	case VERDICT_CONFLICT: return lite_count_evidence(&visit->conn, &plan->evidence, err);
	default: return IBID_OK;
	}
}

/* The look and the writes are one: whoever else wrote since the transaction first read keeps it
 * from writing (BUSY_SNAPSHOT). */
static enum ibid_code begin(struct visit *visit, struct arena *arena,
                            const struct beginning *beginning, struct begun *ret,
                            struct ibid_err *err)
{
	struct command_row row = {.linked = false};
	struct plan plan = {.verdict = VERDICT_RUN};
	enum ibid_code code = lite_find_command(&visit->conn, arena, &beginning->identity, &row, err);
	const struct command_row *found = code ? NULL : &row;
	if (code && code != IBID_NOT_FOUND)
		return code;
	code = beginning->plan(beginning->user, found, &plan, err);
	if (!code)
		code = write_plan(visit, &plan, found, err);
	if (code)
		return code;
	bool runs = plan.verdict == VERDICT_RUN || plan.verdict == VERDICT_RUN_ANEW;
	*ret = (struct begun){plan.verdict, runs ? plan.row : row};
	return IBID_OK;
}

enum ibid_code lite_begin_adopted(struct tx *base, struct arena *arena,
                                  const struct beginning *beginning, struct begun *ret,
                                  struct ibid_err *err)
{
	struct visit visit;
	struct begun begun = {.verdict = VERDICT_RUN};
	visit_init(&visit, (struct lite_adopted *)base);
	enum ibid_code code = check_checkpoints(&visit, err);
	if (!code)
		code = mark(&visit, err);
	if (!code)
		code = settle(&visit, begin(&visit, arena, beginning, &begun, err), err);
	visit_release(&visit);
	if (!code)
		*ret = begun;
	return code;
}

/* ---- Finish --------------------------------------------------------------------------------- */

/* That it is the caller's still, and unfinished. */
static enum ibid_code check_open(struct lite_conn *conn, const struct command_row *row,
                                 struct ibid_err *err)
{
	struct lite_run run;
	int64_t noted = 0;
	enum ibid_code code = lite_start(conn, LITE_open_command_get, &run, err);
	lite_bind_text(&run, row->identity.tenant);
	lite_bind_uuid(&run, &row->id);
	if (lite_row(&run, &code, err))
		noted = lite_read_int(&run);
	lite_end(&run);
	if (!code && !noted)
		code = err_set(err, IBID_MISUSE,
		               "the command is not open in this transaction: what began it was rolled "
		               "back, or it was finished before");
	return code;
}

static enum ibid_code finish(struct visit *visit, const struct finishing *ending,
                             struct ibid_err *err)
{
	struct tx *tx = &visit->tx.base;
	enum ibid_code code = check_open(&visit->conn, ending->row, err);
	for (size_t i = 0; !code && i < ending->event_count; i++)
		code = lite_put_event(tx, &ending->events[i], err);
	if (!code && ending->audit)
		code = store_put_audit(tx, ending->audit, err);
	if (!code)
		code = lite_put_command(tx, ending->row, ending->previous, err);
	if (!code)
		code = note(&visit->conn, LITE_open_command_take, ending->row, err);
	if (code != IBID_REJECTED)
		return code;
	err->code = IBID_FAILED;
	err->next = err_next_of(IBID_FAILED);
	return IBID_FAILED;
}

enum ibid_code lite_finish_adopted(struct tx *base, const struct finishing *ending,
                                   struct ibid_err *err)
{
	const struct lite_adopted *adopted = (struct lite_adopted *)base;
	struct visit visit;
	enum ibid_code code = check_transaction(adopted->db, err);
	if (!code)
		code = lite_file_check(adopted->store, err);
	if (code)
		return code;
	visit_init(&visit, adopted);
	code = mark(&visit, err);
	if (!code)
		code = settle(&visit, finish(&visit, ending, err), err);
	visit_release(&visit);
	return code;
}
