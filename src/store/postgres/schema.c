/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c -- ibid's own schema, and the schema files of users.
 *
 * Each is one transaction under one lock of the database: of several processes one does the work,
 * the others wait and find it done. A commit that did not report success needs no inquiry here:
 * doing it again is harmless. */
#include "store/migration.h"
#include "store/postgres/postgres.h"

#include <assert.h>
#include <string.h>

#include "postgres_sql.h"

enum { SERVER_VERSION_LEAST = 140000 };

static enum ibid_code check_server(const struct pg_conn *conn, struct ibid_err *err)
{
	int version = PQserverVersion(conn->link);
	const char *encoding = PQparameterStatus(conn->link, "server_encoding");
	if (version < SERVER_VERSION_LEAST)
		return err_set(err, IBID_SCHEMA, "PostgreSQL %d is too old; ibid needs %d or later",
		               version / 10000, SERVER_VERSION_LEAST / 10000);
	if (encoding && strcmp(encoding, "UTF8") != 0)
		return err_set(err, IBID_SCHEMA, "the database has the encoding %s; ibid needs UTF8",
		               encoding);
	return IBID_OK;
}

/* One trip; the results stay in the calls. */
static enum ibid_code go(struct pg_conn *conn, struct pg_call *calls, size_t count,
                         struct ibid_err *err)
{
	struct pg_trip trip;
	if (pg_trip(conn, calls, count, &trip))
		return IBID_OK;
	return pg_error(conn, pg_trip_error(conn, calls, count, &trip), err);
}

static enum ibid_code go_one(struct pg_conn *conn, struct pg_call call, struct ibid_err *err)
{
	enum ibid_code code = go(conn, &call, 1, err);
	pg_release(&call, 1);
	return code;
}

/* Many statements of one file. What is wrong with the file itself is `wrong`. */
static enum ibid_code run_text(struct pg_conn *conn, const char *file, const char *text,
                               enum ibid_code wrong, struct ibid_err *err)
{
	struct arena arena = {0};
	struct outcome ignored;
	enum ibid_code code = IBID_OK;
	PGresult *result = pg_exec(conn, file, text);
	ExecStatusType status = PQresultStatus(result);
	if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY)
		goto out;
	code = pg_error_outcome(conn, result, &arena, &ignored, err);
	if (code == IBID_FAILED || code == IBID_DUPLICATE || code == IBID_REJECTED) {
		code = err->code = wrong;
		err->next = err_next_of(wrong);
	}
	if (!conn->broken)
		err_prefix(err, "%s:%d", file, 1 + pg_error_line(result, text));
out:
	PQclear(result);
	arena_release(&arena);
	return code;
}

static enum ibid_code lock_schema(struct pg_store *store, struct pg_conn **ret,
                                  struct ibid_err *err)
{
	struct pg_call calls[] = {PG_CALL(BEGIN), PG_CALL(SCHEMA_LOCK)};
	struct pg_conn *conn = NULL;
	enum ibid_code code = pg_pool_trip(store, calls, 2, &conn, err);
	pg_release(calls, 2);
	if (code)
		return code;
	code = check_server(conn, err);
	if (code)
		pg_pool_give(store, conn);
	else
		*ret = conn;
	return code;
}

/* 0: no schema. A snapshot of its own, so that it sees what another process did before our lock. */
static enum ibid_code read_version(struct pg_conn *conn, int *ret, struct ibid_err *err)
{
	struct pg_call exists = PG_CALL(SCHEMA_EXISTS), version = PG_CALL(SCHEMA_VERSION);
	int number = 0;
	enum ibid_code code = go(conn, &exists, 1, err);
	if (code == IBID_OK && pg_cell_bool(exists.result, 0, 0)) {
		code = go(conn, &version, 1, err);
		if (code == IBID_OK)
			number = (int)pg_cell_int(version.result, 0, 0);
	}
	pg_release(&exists, 1);
	pg_release(&version, 1);
	if (code == IBID_OK)
		*ret = number;
	return code;
}

static enum ibid_code too_new(int version, struct ibid_err *err)
{
	return err_set(err, IBID_SCHEMA,
	               "the store has schema %d, this ibid works with %d and %d; use a newer ibid",
	               version, STORE_SCHEMA, STORE_SCHEMA + 1);
}

/* ---- Migrations ----------------------------------------------------------------------------- */

static enum ibid_code note_version(struct pg_conn *conn, const struct migration *migration,
                                   struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[] = {pg_int(&arena, migration->version), migration->name};
	enum ibid_code code = arena.failed
	                          ? err_set(err, IBID_NOMEM, "out of memory")
	                          : go_one(conn, PG_CALL(SCHEMA_VERSION_PUT, .values = values), err);
	arena_release(&arena);
	return code;
}

static enum ibid_code run_migrations(struct pg_conn *conn, int from, int *ret_to,
                                     struct ibid_err *err)
{
	const size_t count = sizeof pg_migrations / sizeof *pg_migrations;
	assert(pg_migrations[count - 1].version == STORE_SCHEMA);
	*ret_to = from;
	for (size_t i = 0; i < count; i++) {
		const struct migration *file = &pg_migrations[i];
		if (file->version <= from)
			continue;
		enum ibid_code code = run_text(conn, file->name, file->sql, IBID_SCHEMA, err);
		if (code == IBID_OK && (i + 1 == count || file[1].version > file->version))
			code = note_version(conn, file, err);
		if (code)
			return code;
		*ret_to = file->version;
	}
	return IBID_OK;
}

enum ibid_code pg_migrate(struct store *base, int *ret_from, int *ret_to, struct ibid_err *err)
{
	struct pg_store *store = pg_store_of(base);
	struct pg_conn *conn = NULL;
	int from = 0, to = 0;
	enum ibid_code code = lock_schema(store, &conn, err);
	if (code)
		return code;
	code = read_version(conn, &from, err);
	if (code == IBID_OK && from > STORE_SCHEMA + 1)
		code = too_new(from, err);
	if (code == IBID_OK)
		code = run_migrations(conn, from, &to, err);
	if (code == IBID_OK)
		code = go_one(conn, PG_CALL(COMMIT), err);
	pg_pool_give(store, conn);
	if (code)
		return code;
	*ret_from = from;
	*ret_to = to;
	return IBID_OK;
}

enum ibid_code pg_check_schema(struct store *base, int *ret_version, struct ibid_err *err)
{
	struct pg_store *store = pg_store_of(base);
	struct pg_call begin = PG_CALL(BEGIN);
	struct pg_conn *conn = NULL;
	int version = 0;
	enum ibid_code code = pg_pool_trip(store, &begin, 1, &conn, err);
	pg_release(&begin, 1);
	if (code)
		return code;
	code = check_server(conn, err);
	if (code == IBID_OK)
		code = read_version(conn, &version, err);
	pg_pool_give(store, conn);
	if (code)
		return code;
	*ret_version = version;
	if (version == 0)
		return err_set(err, IBID_SCHEMA, "the store has no schema yet; run ibid init");
	if (version < STORE_SCHEMA)
		return err_set(err, IBID_SCHEMA,
		               "the store has schema %d, this ibid needs %d; run ibid init", version,
		               STORE_SCHEMA);
	return version > STORE_SCHEMA + 1 ? too_new(version, err) : IBID_OK;
}

/* ---- Users' schema files -------------------------------------------------------------------- */

static enum ibid_code find_file(struct pg_conn *conn, const char *name, const struct sha256 *digest,
                                enum schema_state *ret, struct ibid_err *err)
{
	const char *values[] = {name};
	struct pg_call call = PG_CALL(SCHEMA_FILE_GET, .values = values);
	enum ibid_code code = go(conn, &call, 1, err);
	if (code == IBID_OK) {
		struct sha256 kept = pg_cell_hash(call.result, 0, 0);
		*ret = !pg_cell(call.result, 0, 0)               ? SCHEMA_APPLIED
		       : memcmp(&kept, digest, sizeof kept) == 0 ? SCHEMA_ALREADY
		                                                 : SCHEMA_CHANGED;
	}
	pg_release(&call, 1);
	return code;
}

/* The file may have ended our transaction: what it did before that can't be taken back, but it is
 * not noted as done. */
static enum ibid_code guard_file(struct pg_conn *conn, const char *name, struct ibid_err *err)
{
	const char *values[] = {name};
	struct pg_call call = PG_CALL(SCHEMA_FILE_GUARD, .values = values);
	enum ibid_code code = go(conn, &call, 1, err);
	bool same = code == IBID_OK && pg_cell_bool(call.result, 0, 0);
	pg_release(&call, 1);
	if (code == IBID_OK && (!same || PQtransactionStatus(conn->link) != PQTRANS_INTRANS))
		code = err_set(err, IBID_CONTRACT,
		               "%s: a schema file runs in one transaction and must not begin or end one; "
		               "what it did before that was kept",
		               name);
	return code;
}

static enum ibid_code rounds(const struct pg_call *call, const char *name, struct ibid_err *err)
{
	if (!PQntuples(call->result))
		return IBID_OK;
	return err_set(err, IBID_CONTRACT, "column %s would round the decimal :%s; declare it numeric",
	               PQgetvalue(call->result, 0, 0), name);
}

static enum ibid_code check_decimal(struct pg_conn *conn, const char *name, struct ibid_err *err)
{
	const char *values[] = {name};
	struct pg_call call = PG_CALL(DECIMAL_COLUMN, .values = values);
	enum ibid_code code = go(conn, &call, 1, err);
	if (code == IBID_OK)
		code = rounds(&call, name, err);
	pg_release(&call, 1);
	return code;
}

static enum ibid_code apply_file(struct pg_conn *conn, const struct schema_file *file,
                                 const struct sha256 *digest, struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[] = {file->name, pg_hash(&arena, digest), pg_time(&arena, file->now_us)};
	enum ibid_code code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                   : run_text(conn, file->name, file->text, IBID_CONTRACT, err);
	if (code == IBID_OK)
		code = guard_file(conn, file->name, err);
	for (size_t i = 0; code == IBID_OK && i < file->decimal_count; i++)
		code = check_decimal(conn, file->decimals[i], err);
	if (code == IBID_OK)
		code = go_one(conn, PG_CALL(SCHEMA_FILE_PUT, .values = values), err);
	if (code == IBID_OK)
		code = go_one(conn, PG_CALL(COMMIT), err);
	arena_release(&arena);
	return code;
}

enum ibid_code pg_apply_schema(struct store *base, const struct schema_file *file,
                               enum schema_state *ret, struct ibid_err *err)
{
	struct pg_store *store = pg_store_of(base);
	struct sha256 digest = sha256(file->text, strlen(file->text));
	enum schema_state state = SCHEMA_APPLIED;
	struct pg_conn *conn = NULL;
	enum ibid_code code = lock_schema(store, &conn, err);
	if (code)
		return code;
	code = find_file(conn, file->name, &digest, &state, err);
	if (code == IBID_OK && state == SCHEMA_APPLIED) {
		code = apply_file(conn, file, &digest, err);
		/* The file may have changed session settings: such a connection does not go back. */
		conn->broken = true;
	}
	pg_pool_give(store, conn);
	if (code == IBID_OK)
		*ret = state;
	return code;
}

enum ibid_code pg_check_decimal_column(struct store *base, const char *name, struct ibid_err *err)
{
	const char *values[] = {name};
	struct pg_call call = PG_CALL(DECIMAL_COLUMN, .values = values);
	enum ibid_code code = pg_pool_query(pg_store_of(base), &call, 1, err);
	if (code == IBID_OK)
		code = rounds(&call, name, err);
	pg_release(&call, 1);
	return code;
}

enum ibid_code pg_describe_index(struct store *base, struct arena *arena, const char *name,
                                 struct index_row *ret, struct ibid_err *err)
{
	const char *values[] = {name};
	struct pg_call call = PG_CALL(INDEX_DESCRIBE, .values = values);
	enum ibid_code code = pg_pool_query(pg_store_of(base), &call, 1, err);
	if (!code && !PQntuples(call.result))
		code = err_set(err, IBID_NOT_FOUND, "there is no index or constraint %s", name);
	if (!code) {
		struct index_row row = {
		    .table = pg_cell_text(arena, call.result, 0, 0),
		    .columns = pg_cell_text(arena, call.result, 0, 1),
		    .unique = pg_cell_bool(call.result, 0, 2),
		    .valid = pg_cell_bool(call.result, 0, 3),
		    .partial = pg_cell_bool(call.result, 0, 4),
		};
		if (arena->failed)
			code = err_set(err, IBID_NOMEM, "out of memory");
		else
			*ret = row;
	}
	pg_release(&call, 1);
	return code;
}
