/* SPDX-License-Identifier: Apache-2.0 */
#include "support/pg_server.h"

#include "store/store.h"

#include <libpq-fe.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char template[64];
static pid_t owner;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	fflush(NULL);
	_exit(1); /* also where the program is ending already */
}

void pg_server_do(const char *format, ...)
{
	char sql[256];
	va_list args;
	va_start(args, format);
	vsnprintf(sql, sizeof sql, format, args);
	va_end(args);
	PGconn *link = PQconnectdb(getenv("IBID_TEST_PG"));
	PQclear(PQexec(link, "set client_min_messages = error"));
	PGresult *result = PQexec(link, sql);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		die(sql, PQerrorMessage(link));
	PQclear(result);
	PQfinish(link);
}

void pg_server_url(const char *database, char *ret, size_t size)
{
	const char *base = getenv("IBID_TEST_PG"), *query = strchr(base, '?');
	const char *slash = strrchr(base, '/');
	if (!slash)
		die(base, "it names no database");
	snprintf(ret, size, "%.*s/%s%s", (int)(slash - base), base, database, query ? query : "");
}

/* Children that a test forked end, too. */
static void drop(void)
{
	if (getpid() == owner)
		pg_server_do("drop database if exists %s with (force)", template);
}

static void migrate(void)
{
	struct store *store = NULL;
	struct ibid_err err = {0};
	char url[512];
	int from, to;
	pg_server_url(template, url, sizeof url);
	struct store_options options = {
	    .url = url, .connections = 1, .busy_ms = 20000, .env = env_system()};
	if (store_postgres_open(&options, &store, &err) || store->ops->migrate(store, &from, &to, &err))
		die(url, err.text);
	store_close(store);
}

const char *pg_server_template(void)
{
	if (owner)
		return template;
	owner = getpid();
	snprintf(template, sizeof template, "ibid_template_%d", (int)owner);
	pg_server_do("create database %s", template);
	atexit(drop);
	migrate();
	return template;
}
