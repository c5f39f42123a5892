/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "bench.h"
#include "bench_sql.h"

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct driver {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENT_COUNT];
	PGconn *conn;
};

static const struct {
	const char *name;
	int count;
	const char *sqlite, *postgres;
} texts[STATEMENT_COUNT] = {
#define STATEMENT_TEXT(name, count, sqlite, postgres) {#name, count, sqlite, postgres},
    STATEMENTS(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

enum { VALUES_MAX = 16, BUSY_MS = 60000 };

static struct driver *driver_new(void)
{
	struct driver *driver = calloc(1, sizeof *driver);
	if (!driver)
		die("driver", "out of memory");
	return driver;
}

static void fail(const struct driver *driver, const char *what)
{
	die(what, driver->db ? sqlite3_errmsg(driver->db) : PQerrorMessage(driver->conn));
}

bool driver_is_sqlite(const struct driver *driver)
{
	return driver->db;
}

/* ---- Opening and closing -------------------------------------------------------------------- */

static sqlite3_stmt *lite_prepare(const struct driver *driver, const char *sql)
{
	sqlite3_stmt *statement;
	if (sqlite3_prepare_v2(driver->db, sql, -1, &statement, NULL))
		fail(driver, sql);
	return statement;
}

struct driver *driver_open_sqlite(const char *path, bool prepared)
{
	struct driver *driver = driver_new();
	if (sqlite3_open(path, &driver->db))
		fail(driver, path);
	sqlite3_busy_timeout(driver->db, BUSY_MS);
	driver_run(driver, "pragma synchronous=full; pragma journal_mode=wal");
	for (int i = 0; prepared && i < STATEMENT_COUNT; i++) {
		if (texts[i].sqlite)
			driver->statements[i] = lite_prepare(driver, texts[i].sqlite);
	}
	return driver;
}

struct driver *driver_open_postgres(const char *url, bool prepared)
{
	struct driver *driver = driver_new();
	driver->conn = PQconnectdb(url);
	if (PQstatus(driver->conn) != CONNECTION_OK)
		fail(driver, "connect");
	for (int i = 0; prepared && i < STATEMENT_COUNT; i++) {
		PGresult *result = PQprepare(driver->conn, texts[i].name, texts[i].postgres, 0, NULL);
		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			fail(driver, texts[i].name);
		PQclear(result);
	}
	return driver;
}

void driver_close(struct driver *driver)
{
	if (!driver)
		return;
	for (int i = 0; i < STATEMENT_COUNT; i++)
		sqlite3_finalize(driver->statements[i]);
	sqlite3_close(driver->db);
	PQfinish(driver->conn);
	free(driver);
}

/* ---- Prepared statements -------------------------------------------------------------------- */

static void lite_step(struct driver *driver, enum statement index, const char *const *values)
{
	sqlite3_stmt *statement = driver->statements[index];
	for (int i = 0; i < texts[index].count; i++)
		sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_STATIC);
	if (sqlite3_step(statement) != SQLITE_DONE)
		fail(driver, texts[index].name);
	sqlite3_reset(statement);
}

/* Takes the result. */
static void pg_answer(struct driver *driver, PGresult *result, enum statement index,
                      struct answer *ret)
{
	ExecStatusType status = PQresultStatus(result);
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		fail(driver, texts[index].name);
	for (int i = 0; ret && i < 2; i++) {
		bool there = PQntuples(result) > 0 && i < PQnfields(result);
		snprintf(ret->columns[i], ANSWER_SIZE, "%s", there ? PQgetvalue(result, 0, i) : "");
	}
	PQclear(result);
}

void driver_step(struct driver *driver, enum statement statement, const char *const *values,
                 struct answer *ret)
{
	if (driver->db) {
		lite_step(driver, statement, values);
		return;
	}
	PGresult *result = PQexecPrepared(driver->conn, texts[statement].name, texts[statement].count,
	                                  values, NULL, NULL, 0);
	pg_answer(driver, result, statement, ret);
}

void driver_pipeline(struct driver *driver, const struct call *calls, size_t count,
                     struct answer *ret)
{
	PGconn *conn = driver->conn;
	if (!PQenterPipelineMode(conn))
		fail(driver, "pipeline");
	for (size_t i = 0; i < count; i++) {
		if (!PQsendQueryPrepared(conn, texts[calls[i].statement].name,
		                         texts[calls[i].statement].count, calls[i].values, NULL, NULL, 0))
			fail(driver, "pipeline");
	}
	if (!PQpipelineSync(conn))
		fail(driver, "pipeline");
	for (size_t i = 0; i < count; i++) {
		pg_answer(driver, PQgetResult(conn), calls[i].statement, i + 1 == count ? ret : NULL);
		PQclear(PQgetResult(conn)); /* NULL: the end of that statement */
	}
	PQclear(PQgetResult(conn)); /* the sync */
	if (!PQexitPipelineMode(conn))
		fail(driver, "pipeline");
}

/* ---- Other statements ----------------------------------------------------------------------- */

void driver_run(struct driver *driver, const char *sql)
{
	if (driver->db) {
		if (sqlite3_exec(driver->db, sql, NULL, NULL, NULL))
			fail(driver, sql);
		return;
	}
	PGresult *result = PQexec(driver->conn, sql);
	ExecStatusType status = PQresultStatus(result);
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		fail(driver, sql);
	PQclear(result);
}

static void keep_number(void *user, const char *text)
{
	int64_t *number = user;
	*number = strtoll(text, NULL, 10);
}

int64_t driver_number(struct driver *driver, const char *sql)
{
	int64_t number = 0;
	driver_query(driver, sql, NULL, 0, keep_number, &number);
	return number;
}

static void lite_query(struct driver *driver, const char *sql, const int64_t *values, int count,
                       row_fn *each, void *user)
{
	sqlite3_stmt *statement = lite_prepare(driver, sql);
	int rc;
	for (int i = 0; i < count; i++)
		sqlite3_bind_int64(statement, i + 1, values[i]);
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
		if (each && sqlite3_column_type(statement, 0) != SQLITE_NULL)
			each(user, (const char *)sqlite3_column_text(statement, 0));
	}
	if (rc != SQLITE_DONE)
		fail(driver, sql);
	sqlite3_finalize(statement);
}

void driver_query(struct driver *driver, const char *sql, const int64_t *values, int count,
                  row_fn *each, void *user)
{
	char numbers[VALUES_MAX][24];
	const char *parameters[VALUES_MAX] = {0};
	if (driver->db) {
		lite_query(driver, sql, values, count, each, user);
		return;
	}
	for (int i = 0; i < count; i++) {
		snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)values[i]);
		parameters[i] = numbers[i];
	}
	PGresult *result = PQexecParams(driver->conn, sql, count, NULL, parameters, NULL, NULL, 0);
	ExecStatusType status = PQresultStatus(result);
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		fail(driver, sql);
	for (int row = 0; each && row < PQntuples(result); row++) {
		if (!PQgetisnull(result, row, 0))
			each(user, PQgetvalue(result, row, 0));
	}
	PQclear(result);
}
