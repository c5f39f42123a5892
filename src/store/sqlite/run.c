/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/run.h"

#include <assert.h>
#include <string.h>

enum ibid_code lite_start(struct lite_conn *conn, enum lite_sql sql, struct lite_run *run,
                          struct ibid_err *err)
{
	*run = (struct lite_run){.conn = conn, .sql = sql};
	return lite_conn_statement(conn, sql, &run->stmt, err);
}

static void note(struct lite_run *run, int rc)
{
	if (!run->rc)
		run->rc = rc;
}

void lite_bind_bytes(struct lite_run *run, const char *text, size_t size)
{
	int at = ++run->bound;
	if (run->stmt && text)
		note(run, sqlite3_bind_text64(run->stmt, at, text, size, SQLITE_STATIC, SQLITE_UTF8));
	else if (run->stmt)
		note(run, sqlite3_bind_null(run->stmt, at));
}

void lite_bind_text(struct lite_run *run, const char *text)
{
	lite_bind_bytes(run, text, text ? strlen(text) : 0);
}

void lite_bind_int(struct lite_run *run, int64_t number)
{
	int at = ++run->bound;
	if (run->stmt)
		note(run, sqlite3_bind_int64(run->stmt, at, number));
}

void lite_bind_int_or_null(struct lite_run *run, int64_t number)
{
	if (number)
		lite_bind_int(run, number);
	else
		run->bound++; /* what is not bound is NULL */
}

void lite_bind_uuid(struct lite_run *run, const struct uuid *uuid)
{
	char text[UUID_TEXT_SIZE];
	int at = ++run->bound;
	if (uuid)
		uuid_write(*uuid, text);
	if (run->stmt && uuid)
		note(run, sqlite3_bind_text(run->stmt, at, text, UUID_TEXT_SIZE - 1, SQLITE_TRANSIENT));
	else if (run->stmt)
		note(run, sqlite3_bind_null(run->stmt, at));
}

void lite_bind_uuid_or_null(struct lite_run *run, const struct uuid *uuid)
{
	static const struct uuid none;
	lite_bind_uuid(run, memcmp(uuid, &none, sizeof none) == 0 ? NULL : uuid);
}

void lite_bind_hash(struct lite_run *run, const struct sha256 *hash)
{
	int at = ++run->bound;
	if (run->stmt)
		note(run, sqlite3_bind_blob(run->stmt, at, hash->bytes, sizeof hash->bytes, SQLITE_STATIC));
}

/* A connection of the caller's may have been told to return the short codes. */
static int extended(const struct lite_run *run)
{
	int rc = sqlite3_extended_errcode(run->conn->db);
	return (rc & 0xff) == (run->rc & 0xff) ? rc : run->rc;
}

bool lite_row(struct lite_run *run, enum ibid_code *code, struct ibid_err *err)
{
	if (*code)
		return false;
	assert(run->bound == sqlite3_bind_parameter_count(run->stmt));
	run->read = 0;
	if (!run->rc)
		run->rc = lite_conn_step(run->conn, run->stmt, lite_sql[run->sql].name);
	else if (run->rc == SQLITE_ROW)
		run->rc = sqlite3_step(run->stmt);
	if (run->rc != SQLITE_ROW && run->rc != SQLITE_DONE) {
		run->rc = extended(run);
		*code = lite_fail(run->conn, run->rc, err);
	}
	return run->rc == SQLITE_ROW;
}

enum ibid_code lite_finish(struct lite_run *run, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	while (lite_row(run, &code, err))
		;
	return code;
}

const char *lite_read_bytes(struct lite_run *run, struct arena *arena, size_t *ret_size)
{
	int at = run->read++;
	const unsigned char *text = sqlite3_column_text(run->stmt, at);
	*ret_size = text ? (size_t)sqlite3_column_bytes(run->stmt, at) : 0;
	return text ? arena_strndup(arena, (const char *)text, *ret_size) : NULL;
}

const char *lite_read_text(struct lite_run *run, struct arena *arena)
{
	size_t size;
	return lite_read_bytes(run, arena, &size);
}

int64_t lite_read_int(struct lite_run *run)
{
	return sqlite3_column_int64(run->stmt, run->read++);
}

int lite_read_small(struct lite_run *run)
{
	return sqlite3_column_int(run->stmt, run->read++);
}

struct uuid lite_read_uuid(struct lite_run *run)
{
	struct uuid uuid = {{0}};
	const unsigned char *text = sqlite3_column_text(run->stmt, run->read++);
	if (text && !uuid_read((const char *)text, &uuid))
		memset(&uuid, 0, sizeof uuid);
	return uuid;
}

struct sha256 lite_read_hash(struct lite_run *run)
{
	struct sha256 hash = {{0}};
	int at = run->read++;
	const void *bytes = sqlite3_column_blob(run->stmt, at);
	if (bytes && sqlite3_column_bytes(run->stmt, at) == (int)sizeof hash.bytes)
		memcpy(hash.bytes, bytes, sizeof hash.bytes);
	return hash;
}

void lite_end(struct lite_run *run)
{
	if (!run->stmt)
		return;
	/* An unfinished read would keep its snapshot and stop the WAL from being reset. */
	sqlite3_reset(run->stmt);
	sqlite3_clear_bindings(run->stmt);
	run->stmt = NULL;
}

enum ibid_code lite_conclude(struct lite_run *run, enum ibid_code code, struct ibid_err *err)
{
	if (!code)
		code = lite_finish(run, err);
	lite_end(run);
	return code;
}

enum ibid_code lite_number(struct lite_conn *conn, enum lite_sql sql, int64_t *ret,
                           struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, sql, &run, err);
	int64_t number = 0;
	if (lite_row(&run, &code, err))
		number = lite_read_int(&run);
	lite_end(&run);
	if (!code)
		*ret = number;
	return code;
}

enum ibid_code lite_do(struct lite_conn *conn, enum lite_sql sql, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, sql, &run, err);
	return lite_conclude(&run, code, err);
}
