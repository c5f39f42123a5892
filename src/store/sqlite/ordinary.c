/* SPDX-License-Identifier: Apache-2.0 */
/* ordinary.c -- ordinary statements on SQLite: values that are bound by their types, rows that are
 * read by the names of their columns. */
#include "store/run.h"
#include "store/sqlite/lite.h"

#include <string.h>

static void bind(struct lite_run *run, const struct sql_value *value)
{
	if (value->null) {
		lite_bind_text(run, NULL);
		return;
	}
	switch (value->type) {
	case COLUMN_SIZED: lite_bind_bytes(run, value->text, value->size); break;
	case COLUMN_LONG:
	case COLUMN_BOOL:
	case COLUMN_TIME:
	case COLUMN_TIME_OR_NONE: lite_bind_int(run, value->number); break;
	case COLUMN_UUID: lite_bind_uuid(run, &value->uuid); break;
	case COLUMN_HASH: lite_bind_hash(run, &value->hash); break;
	default: lite_bind_text(run, value->text); break;
	}
}

static enum ibid_code finish(struct lite_run *run, const struct sql_in *in, struct ibid_err *err)
{
	const char *demand = sql_statements[in->id].demand;
	enum ibid_code code = lite_finish(run, err);
	if (!code && demand && sqlite3_changes(run->conn->db) != 1)
		code = err_set(err, IBID_RETRY, "%s", demand);
	return code;
}

/* ---- Results -------------------------------------------------------------------------------- */

static const char *column_name(const struct row_source *source, int column)
{
	return sqlite3_column_name(source->result, column);
}

static struct uuid read_uuid(sqlite3_stmt *stmt, int column)
{
	struct uuid uuid = {{0}};
	const char *text = (const char *)sqlite3_column_text(stmt, column);
	if (text && !uuid_read(text, &uuid))
		memset(&uuid, 0, sizeof uuid);
	return uuid;
}

/* Bytes, or their text in hex. */
static struct sha256 read_hash(sqlite3_stmt *stmt, int column)
{
	struct sha256 hash = {{0}};
	if (sqlite3_column_type(stmt, column) == SQLITE_TEXT)
		(void)!sha256_read((const char *)sqlite3_column_text(stmt, column), &hash);
	else if (sqlite3_column_bytes(stmt, column) == (int)sizeof hash.bytes)
		memcpy(hash.bytes, sqlite3_column_blob(stmt, column), sizeof hash.bytes);
	return hash;
}

static void read_cell(const struct row_source *source, int column, enum column_type type,
                      struct sql_value *ret)
{
	sqlite3_stmt *stmt = source->result;
	switch (type) {
	case COLUMN_LONG:
	case COLUMN_BOOL:
	case COLUMN_TIME: ret->number = sqlite3_column_int64(stmt, column); break;
	case COLUMN_UUID: ret->uuid = read_uuid(stmt, column); break;
	case COLUMN_HASH: ret->hash = read_hash(stmt, column); break;
	default:
		ret->text = (const char *)sqlite3_column_text(stmt, column);
		ret->size = (size_t)sqlite3_column_bytes(stmt, column);
		break;
	}
}

void lite_read_row(struct lite_run *run, const struct row_shape *shape, struct arena *arena,
                   void *ret)
{
	struct row_source source = {
	    .result = run->stmt,
	    .columns = sqlite3_column_count(run->stmt),
	    .name = column_name,
	    .cell = read_cell,
	};
	row_read(shape, &source, arena, ret);
}

static enum ibid_code read_rows(struct lite_run *run, struct row_list *rows, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	struct row_source source = {
	    .result = run->stmt,
	    .columns = sqlite3_column_count(run->stmt),
	    .name = column_name,
	    .cell = read_cell,
	};
	while (lite_row(run, &code, err))
		row_list_read(rows, &source);
	return code;
}

/* ---- Verbs ---------------------------------------------------------------------------------- */

enum ibid_code lite_run_sql(struct lite_conn *conn, const struct sql_in *in, struct row_list *rows,
                            struct ibid_err *err)
{
	struct arena arena = {0};
	struct sql_value values[SQL_PARAMS_MAX];
	struct lite_run run;
	enum ibid_code code = lite_start(conn, (enum lite_sql)in->id, &run, err);
	if (!code && !sql_values(in, &arena, values))
		code = err_set(err, IBID_NOMEM, "out of memory");
	for (size_t i = 0; !code && i < sql_statements[in->id].count; i++)
		bind(&run, &values[i]);
	if (!code && sql_statements[in->id].clock)
		lite_bind_int(&run, env_wall_us(conn->env));
	if (!code)
		code = rows ? read_rows(&run, rows, err) : finish(&run, in, err);
	lite_end(&run);
	arena_release(&arena);
	return code;
}

enum ibid_code lite_put(struct tx *base, const struct sql_in *in, struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	enum ibid_code code = lite_tx_ready(tx, err);
	return code ? code : lite_tx_failed(tx, lite_run_sql(tx->conn, in, NULL, err), err);
}

enum ibid_code lite_change(struct store *base, const struct sql_in *in, int64_t *ret_changed,
                           struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	code = lite_run_sql(conn, in, NULL, err);
	int64_t changed = sqlite3_changes64(conn->db);
	code = lite_write_end(store, code, err);
	if (!code)
		*ret_changed = changed;
	return code;
}

enum ibid_code lite_check_settled(struct store *base, enum ibid_code code, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	if (!store->stale)
		return code;
	return err_set(err, IBID_BUSY, "%s: the outcome of a commit is not known yet; ask again",
	               store->path);
}

enum ibid_code lite_query(struct store *base, const struct sql_in *in, struct row_list *ret,
                          struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_run_sql(conn, in, ret, err);
	lite_reader_give(store, conn);
	return code;
}
