/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c -- our migrations and the user's schema files, each run once, each in one transaction.
 */
#include "store/sqlite/lite.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* ---- Journal mode --------------------------------------------------------------------------- */

static enum ibid_code try_wal(struct lite_conn *conn, bool *ret_wal, struct ibid_err *err)
{
	struct arena arena = {0};
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_wal_set, &run, err);
	const char *mode = NULL;
	if (lite_row(&run, &code, err))
		mode = lite_read_text(&run, &arena);
	lite_end(&run);
	*ret_wal = mode && strcmp(mode, "wal") == 0;
	arena_release(&arena);
	return code;
}

/* The mode is a property of the file. Two processes that set it at once get a lock error without
 * SQLite's usual waiting, so the waiting is done here. */
enum ibid_code lite_use_wal(struct lite_store *store, struct ibid_err *err)
{
	enum { STEP_US = 5000 };
	int64_t left = lite_wait_us(store);
	bool wal = false;
	pthread_mutex_lock(&store->checkpoint_lock);
	enum ibid_code code = try_wal(store->checkpointer, &wal, err);
	for (; code == IBID_BUSY && left > 0; left -= STEP_US) {
		env_sleep_us(env_system(), STEP_US);
		code = try_wal(store->checkpointer, &wal, err);
	}
	pthread_mutex_unlock(&store->checkpoint_lock);
	if (!code && !wal)
		code = err_set(err, IBID_IO, "%s: its file system can't share memory, which WAL mode needs",
		               store->path);
	return code;
}

/* ---- Our schema ----------------------------------------------------------------------------- */

enum ibid_code lite_schema_version(struct lite_conn *conn, int *ret, struct ibid_err *err)
{
	int64_t exists = 0, version = 0;
	enum ibid_code code = lite_number(conn, LITE_schema_exists, &exists, err);
	if (!code && exists)
		code = lite_number(conn, LITE_schema_version, &version, err);
	if (!code)
		*ret = (int)version;
	return code;
}

static enum ibid_code too_new(struct lite_store *store, int version, struct ibid_err *err)
{
	return err_set(err, IBID_SCHEMA,
	               "%s has schema %d, made by a newer ibid; this one knows %d: upgrade ibid",
	               store->path, version, STORE_SCHEMA);
}

static enum ibid_code run_migration(struct lite_conn *conn, const struct migration *file,
                                    struct ibid_err *err)
{
	int rc = SQLITE_IOERR;
	if (!lite_conn_fails(conn, HOOK_BEFORE, file->name))
		rc = sqlite3_exec(conn->db, file->sql, NULL, NULL, NULL);
	if (!rc && lite_conn_fails(conn, HOOK_AFTER, file->name))
		rc = SQLITE_IOERR;
	if (!rc)
		return IBID_OK;
	lite_fail(conn, rc, err);
	return err_prefix(err, "migration %s", file->name);
}

static enum ibid_code note_version(struct lite_store *store, struct lite_conn *conn,
                                   const struct migration *migration, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_schema_put, &run, err);
	lite_bind_int(&run, migration->version);
	lite_bind_text(&run, migration->name);
	lite_bind_int(&run, env_wall_us(store->env));
	return lite_conclude(&run, code, err);
}

static enum ibid_code run_migrations(struct lite_store *store, struct lite_conn *conn,
                                     int *ret_from, struct ibid_err *err)
{
	enum ibid_code code = lite_schema_version(conn, ret_from, err);
	if (!code && *ret_from > STORE_SCHEMA + 1)
		code = too_new(store, *ret_from, err);
	assert(lite_migrations[lite_migration_count - 1].version == STORE_SCHEMA);
	for (size_t i = 0; !code && i < lite_migration_count; i++) {
		const struct migration *file = &lite_migrations[i];
		if (file->version <= *ret_from)
			continue;
		code = run_migration(conn, file, err);
		if (!code && (i + 1 == lite_migration_count || file[1].version > file->version))
			code = note_version(store, conn, file, err);
	}
	return code;
}

enum ibid_code lite_migrate(struct store *base, int *ret_from, int *ret_to, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	int from = 0;
	enum ibid_code code = lite_use_wal(store, err);
	if (!code)
		code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	code = run_migrations(store, conn, &from, err);
	code = lite_write_end(store, code, err);
	if (!code) {
		*ret_from = from;
		*ret_to = from > STORE_SCHEMA ? from : STORE_SCHEMA;
	}
	return code;
}

enum ibid_code lite_check_schema(struct store *base, int *ret_version, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	int version = 0;
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_schema_version(conn, &version, err);
	lite_reader_give(store, conn);
	if (code)
		return code;
	*ret_version = version;
	if (version == 0)
		return err_set(err, IBID_SCHEMA, "%s has no ibid schema; run ibid init", store->path);
	if (version < STORE_SCHEMA)
		return err_set(err, IBID_SCHEMA, "%s has schema %d, this ibid needs %d; run ibid init",
		               store->path, version, STORE_SCHEMA);
	return version > STORE_SCHEMA + 1 ? too_new(store, version, err) : IBID_OK;
}

/* ---- The user's schema ---------------------------------------------------------------------- */

/* The line in `text` where the statement that starts at `at` has its first word. */
static int line_of(const char *text, const char *at)
{
	int line = 1;
	while (isspace((unsigned char)*at))
		at++;
	for (; text < at; text++)
		line += *text == '\n';
	return line;
}

static enum ibid_code statement_failed(struct lite_conn *conn, int rc, struct ibid_err *err)
{
	enum ibid_code code = lite_code_of(rc);
	if (code != IBID_FAILED)
		return lite_fail(conn, rc, err);
	return err_set(err, IBID_CONTRACT, "%s",
	               rc == SQLITE_AUTH && conn->refused ? conn->refused : sqlite3_errmsg(conn->db));
}

static enum ibid_code run_one(struct lite_conn *conn, const char **at, struct ibid_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(conn->db, *at, -1, &stmt, at);
	if (!rc && stmt)
		rc = lite_conn_step(conn, stmt, "schema_file");
	while (rc == SQLITE_ROW)
		rc = sqlite3_step(stmt);
	enum ibid_code code = IBID_OK;
	if (rc && rc != SQLITE_DONE)
		code = statement_failed(conn, rc, err);
	sqlite3_finalize(stmt);
	return code;
}

static enum ibid_code run_file(struct lite_conn *conn, const char *name, const char *text,
                               struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	const char *at = text, *start = text;
	conn->mode = LITE_SCRIPT;
	while (!code && *at) {
		start = at;
		code = run_one(conn, &at, err);
		if (!code && sqlite3_get_autocommit(conn->db))
			code = err_set(err, IBID_CONTRACT, "the statement rolled the transaction back");
	}
	conn->mode = LITE_OURS;
	if (code)
		err_prefix(err, "%s:%d", name, line_of(text, start));
	return code;
}

static enum ibid_code note_file(struct lite_conn *conn, const char *name,
                                const struct sha256 *digest, int64_t now_us, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_schema_file_put, &run, err);
	lite_bind_text(&run, name);
	lite_bind_hash(&run, digest);
	lite_bind_int(&run, now_us);
	return lite_conclude(&run, code, err);
}

static enum ibid_code file_state(struct lite_conn *conn, const char *name,
                                 const struct sha256 *digest, enum schema_state *ret,
                                 struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_schema_file_get, &run, err);
	*ret = SCHEMA_APPLIED;
	lite_bind_text(&run, name);
	if (lite_row(&run, &code, err)) {
		struct sha256 kept = lite_read_hash(&run);
		*ret = memcmp(&kept, digest, sizeof kept) == 0 ? SCHEMA_ALREADY : SCHEMA_CHANGED;
	}
	lite_end(&run);
	return code;
}

static enum ibid_code check_decimal(struct lite_conn *conn, const char *name, struct ibid_err *err)
{
	struct arena arena = {0};
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_decimal_column, &run, err);
	lite_bind_text(&run, name);
	if (lite_row(&run, &code, err)) {
		const char *column = lite_read_text(&run, &arena);
		code = err_set(err, IBID_CONTRACT,
		               "column %s would round the decimal :%s; declare it text, in a strict table",
		               column ? column : name, name);
	}
	lite_end(&run);
	arena_release(&arena);
	return code;
}

static enum ibid_code apply(struct lite_conn *conn, const struct schema_file *file,
                            const struct sha256 *digest, struct ibid_err *err)
{
	enum ibid_code code = run_file(conn, file->name, file->text, err);
	for (size_t i = 0; !code && i < file->decimal_count; i++)
		code = check_decimal(conn, file->decimals[i], err);
	return code ? code : note_file(conn, file->name, digest, file->now_us, err);
}

enum ibid_code lite_apply_schema(struct store *base, const struct schema_file *file,
                                 enum schema_state *ret, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct sha256 digest = sha256(file->text, strlen(file->text));
	struct lite_conn *conn;
	enum schema_state state = SCHEMA_APPLIED;
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	code = file_state(conn, file->name, &digest, &state, err);
	if (!code && state == SCHEMA_APPLIED)
		code = apply(conn, file, &digest, err);
	code = lite_write_end(store, code, err);
	if (!code)
		*ret = state;
	return code;
}

enum ibid_code lite_check_decimal_column(struct store *base, const char *name, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = check_decimal(conn, name, err);
	lite_reader_give(store, conn);
	return code;
}

static enum ibid_code describe_index(struct lite_conn *conn, struct arena *arena, const char *name,
                                     struct index_row *ret, struct ibid_err *err)
{
	struct lite_run run;
	struct index_row row = {.valid = true};
	enum ibid_code code = lite_start(conn, LITE_index_describe, &run, err);
	lite_bind_text(&run, name);
	bool found = lite_row(&run, &code, err);
	if (found) {
		row.table = lite_read_text(&run, arena);
		row.columns = lite_read_text(&run, arena);
		row.unique = lite_read_int(&run);
		row.partial = lite_read_int(&run);
	}
	lite_end(&run);
	if (!code && arena->failed)
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (!code && !found)
		code = err_set(err, IBID_NOT_FOUND, "there is no index %s", name);
	if (!code)
		*ret = row;
	return code;
}

enum ibid_code lite_describe_index(struct store *base, struct arena *arena, const char *name,
                                   struct index_row *ret, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = describe_index(conn, arena, name, ret, err);
	lite_reader_give(store, conn);
	return code;
}
