/* SPDX-License-Identifier: Apache-2.0 */
#include "support/pg_template.h"

#include "store/store.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char name[64];
static pid_t owner;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void admin(const char *format)
{
	char sql[128];
	PGconn *link = PQconnectdb(getenv("IBID_TEST_PG"));
	snprintf(sql, sizeof sql, format, name);
	PGresult *result = PQexec(link, sql);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fprintf(stderr, "%s: %s\n", sql, PQerrorMessage(link));
	PQclear(result);
	PQfinish(link);
}

/* Children that a test forked end, too. */
static void drop(void)
{
	if (getpid() == owner)
		admin("drop database if exists %s with (force)");
}

static void migrate(void)
{
	struct store *store = NULL;
	struct ibid_err err = {0};
	char url[512];
	const char *base = getenv("IBID_TEST_PG"), *query = strchr(base, '?');
	const char *slash = strrchr(base, '/');
	int from, to;
	snprintf(url, sizeof url, "%.*s/%s%s", (int)(slash - base), base, name, query ? query : "");
	struct store_options options = {
	    .url = url, .connections = 1, .busy_ms = 20000, .env = env_system()};
	if (store_postgres_open(&options, &store, &err) || store->ops->migrate(store, &from, &to, &err))
		die(url, err.text);
	store_close(store);
}

const char *pg_template(void)
{
	if (owner)
		return name;
	owner = getpid();
	snprintf(name, sizeof name, "ibid_template_%d", (int)owner);
	admin("create database %s");
	atexit(drop);
	migrate();
	return name;
}
