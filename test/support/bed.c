/* SPDX-License-Identifier: Apache-2.0 */
#include "support/bed.h"

#include "support/pg_server.h"
#include "support/scratch.h"

#include <dirent.h>
#include <libpq-fe.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum bed_kind bed_kind;

void bed_choose(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "sqlite";
	bed_kind = strcmp(name, "postgres") == 0 ? BED_POSTGRES : BED_SQLITE;
	if (bed_kind == BED_POSTGRES && !getenv("IBID_TEST_PG")) {
		fprintf(stderr, "IBID_TEST_PG is not set: run through tools/with-postgres\n");
		exit(1);
	}
}

static void copy_file(const char *from, const char *to)
{
	char block[65536];
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	assert_non_null(in);
	assert_non_null(out);
	for (size_t size; (size = fread(block, 1, sizeof block, in)) > 0;)
		assert_int_equal(fwrite(block, 1, size, out), size);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

static void copy_dir(const char *from, const char *to)
{
	DIR *dir = opendir(from);
	char source[512], target[512];
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
		snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
		copy_file(source, target);
	}
	closedir(dir);
}

static void remove_dir(const char *path)
{
	DIR *dir = opendir(path);
	char child[1024];
	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
		if (unlink(child) != 0)
			remove_dir(child);
	}
	closedir(dir);
	rmdir(path);
}

/* A copy of `template`. */
static void make(struct bed *bed, const char *fixture, const char *template)
{
	*bed = (struct bed){.kind = bed_kind};
	scratch_dir("ibid-test", bed->dir, sizeof bed->dir);
	snprintf(bed->contracts, sizeof bed->contracts, "%s/contracts", bed->dir);
	char command[256];
	snprintf(command, sizeof command, "mkdir %s", bed->contracts);
	assert_int_equal(system(command), 0);
	copy_dir(fixture, bed->contracts);
	if (bed->kind == BED_SQLITE) {
		snprintf(bed->url, sizeof bed->url, "sqlite:%s/store.db", bed->dir);
		return;
	}
	snprintf(bed->database, sizeof bed->database, "bed_%s", strrchr(bed->dir, '-') + 1);
	pg_server_do("create database \"%s\" template %s", bed->database, template);
	pg_server_url(bed->database, bed->url, sizeof bed->url);
}

void bed_open_empty(struct bed *bed, const char *fixture)
{
	make(bed, fixture, "template1");
}

void bed_init(const struct bed *bed)
{
	struct ibid_err err = {0};
	if (ibid_init(IBID_OPTIONS(.store = bed->url, .contracts = bed->contracts), &err))
		fail_msg("ibid_init: %s", err.text);
}

void bed_open(struct bed *bed, const char *fixture)
{
	make(bed, fixture, bed_kind == BED_POSTGRES ? pg_server_template() : NULL);
	bed_init(bed);
}

void bed_close(struct bed *bed)
{
	if (bed->kind == BED_POSTGRES)
		pg_server_do("drop database if exists \"%s\" with (force)", bed->database);
	remove_dir(bed->dir);
}

struct ibid *bed_ibid(const struct bed *bed, const struct api_seams *seams)
{
	struct ibid *ibid = NULL;
	struct ibid_err err = {0};
	if (api_open(IBID_OPTIONS(.store = bed->url, .contracts = bed->contracts, .busy_ms = 20000,
	                          .connections = 24),
	             seams, &ibid, &err))
		fail_msg("ibid_open: %s", err.text);
	return ibid;
}

/* False when the database refused it: then `error` says why. */
static bool sqlite_run(const struct bed *bed, char *sql, int64_t *number, char error[256])
{
	sqlite3 *db;
	sqlite3_stmt *statement = NULL;
	const char *tail = sql;
	int rc = SQLITE_DONE;
	for (char *at; (at = strstr(sql, "ibid."));)
		at[4] = '_';
	assert_int_equal(sqlite3_open(bed->url + strlen("sqlite:"), &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 20000);
	while (rc == SQLITE_DONE && *tail) {
		rc = sqlite3_prepare_v2(db, tail, -1, &statement, &tail);
		if (rc == SQLITE_OK && statement) {
			while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
				*number = sqlite3_column_int64(statement, 0);
		} else if (rc == SQLITE_OK) {
			rc = SQLITE_DONE;
		}
		sqlite3_finalize(statement);
	}
	if (rc != SQLITE_DONE)
		snprintf(error, 256, "%s", sqlite3_errmsg(db));
	sqlite3_close(db);
	return rc == SQLITE_DONE;
}

static bool postgres_run(const struct bed *bed, const char *sql, int64_t *number, char error[256])
{
	PGconn *conn = PQconnectdb(bed->url);
	PGresult *result = PQexec(conn, sql);
	bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;
	if (PQresultStatus(result) == PGRES_TUPLES_OK) {
		ok = true;
		if (PQntuples(result) > 0)
			*number = atoll(PQgetvalue(result, 0, 0));
	} else if (!ok) {
		snprintf(error, 256, "%s", PQerrorMessage(conn));
	}
	PQclear(result);
	PQfinish(conn);
	return ok;
}

static bool run_text(const struct bed *bed, char *sql, int64_t *number, char error[256])
{
	return bed->kind == BED_SQLITE ? sqlite_run(bed, sql, number, error)
	                               : postgres_run(bed, sql, number, error);
}

static int64_t run(const struct bed *bed, const char *format, va_list args)
{
	char sql[4096], error[256];
	int64_t number = 0;
	vsnprintf(sql, sizeof sql, format, args);
	if (!run_text(bed, sql, &number, error))
		fail_msg("%s: %s", sql, error);
	return number;
}

void bed_refuses(const struct bed *bed, const char *statement, const char *part)
{
	char sql[4096], error[256];
	int64_t number = 0;
	snprintf(sql, sizeof sql, "%s", statement);
	if (run_text(bed, sql, &number, error))
		fail_msg("not refused: %s", sql);
	if (!strstr(error, part))
		fail_msg("%s: %s", sql, error);
}

void bed_exec(const struct bed *bed, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	run(bed, format, args);
	va_end(args);
}

int64_t bed_number(const struct bed *bed, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int64_t number = run(bed, format, args);
	va_end(args);
	return number;
}

#define MICROSECONDS_OF "(extract(epoch from %s) * 1000000)::bigint"

int64_t bed_mark(const struct bed *bed)
{
	return bed->kind == BED_POSTGRES
	           ? bed_number(bed, "select " MICROSECONDS_OF, "clock_timestamp()")
	           : 0;
}

void bed_settle_since(const struct bed *bed, int64_t since)
{
	while (bed->kind == BED_POSTGRES &&
	       bed_number(bed,
	                  "select count(*) from pg_stat_activity where backend_type = 'client backend' "
	                  "and datname = current_database() and pid <> pg_backend_pid() "
	                  "and " MICROSECONDS_OF " > %lld",
	                  "backend_start", (long long)since))
		sched_yield();
}

void bed_settle(const struct bed *bed)
{
	bed_settle_since(bed, 0);
}

void bed_write(const struct bed *bed, const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", bed->contracts, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
}

void bed_replace(const struct bed *bed, const char *name, const char *from, const char *to)
{
	char path[512], text[16384], changed[16384];
	snprintf(path, sizeof path, "%s/%s", bed->contracts, name);
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	size_t size = fread(text, 1, sizeof text - 1, file);
	text[size] = '\0';
	fclose(file);
	char *at = strstr(text, from);
	assert_non_null(at);
	snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	bed_write(bed, name, changed);
}

void bed_keep_contracts(const struct bed *bed, const char *const *names)
{
	DIR *dir = opendir(bed->contracts);
	char path[512];
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));) {
		const char *dot = strrchr(entry->d_name, '.');
		bool keep = !dot || strcmp(dot, ".yaml") != 0 ||
		            strcmp(entry->d_name, "defaults.yaml") == 0;
		for (size_t i = 0; names[i]; i++)
			keep = keep || strcmp(entry->d_name, names[i]) == 0;
		snprintf(path, sizeof path, "%s/%s", bed->contracts, entry->d_name);
		if (!keep)
			assert_int_equal(unlink(path), 0);
	}
	closedir(dir);
}

struct ibid_result *bed_submit(struct ibid *ibid, const char *operation, const char *key,
                               const char *payload)
{
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (ibid_submit(ibid,
	                IBID_COMMAND(.tenant = "t", .client = "c", .actor = "a", .operation = operation,
	                             .key = key, .payload = payload),
	                &result, &err))
		fail_msg("submit %s %s: %s: %s", operation, key ? key : "-", ibid_code_name(err.code),
		         err.text);
	return result;
}

const char *bed_say(const struct ibid_result *result)
{
	static _Thread_local char text[64];
	snprintf(text, sizeof text, "%s%s %d", ibid_result_replayed(result) ? "replayed " : "",
	         ibid_decision_name(ibid_result_decision(result)), ibid_result_status(result));
	return text;
}

void bed_expect(struct ibid *ibid, const char *operation, const char *key, const char *payload,
                const char *expected)
{
	struct ibid_result *result = bed_submit(ibid, operation, key, payload);
	char said[600];
	snprintf(said, sizeof said, "%s", bed_say(result));
	if (strcmp(said, expected) != 0)
		print_message("%s %s %s: %s\n", operation, key ? key : "-", payload,
		              ibid_result_text(result));
	assert_string_equal(said, expected);
	ibid_result_free(result);
}
