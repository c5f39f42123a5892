/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pg_fixture.h"

#include "support/pg_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char admin_url[512], host[128] = "127.0.0.1", database[64], built[512];
static int port = 5432, made;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

PGconn *fixture_connect(const char *url)
{
	PGconn *link = PQconnectdb(url);
	if (PQstatus(link) != CONNECTION_OK)
		die("connect", PQerrorMessage(link));
	PQclear(PQexec(link, "set client_min_messages = error"));
	return link;
}

void fixture_start(void)
{
	const char *url = getenv("IBID_TEST_PG");
	if (!url || !*url) {
		fprintf(stderr, "IBID_TEST_PG is not set: run through tools/with-postgres\n");
		exit(getenv("IBID_TEST_REQUIRE_PG") ? 1 : 77);
	}
	snprintf(admin_url, sizeof admin_url, "%s", url);
	PQconninfoOption *options = PQconninfoParse(url, NULL);
	if (!options)
		die("IBID_TEST_PG", "not a URL");
	for (PQconninfoOption *option = options; option->keyword; option++) {
		if (strcmp(option->keyword, "port") == 0 && option->val)
			port = atoi(option->val);
		if (strcmp(option->keyword, "host") == 0 && option->val)
			snprintf(host, sizeof host, "%s", option->val);
	}
	PQconninfoFree(options);
}

void fixture_stop(void)
{
	if (*database)
		pg_server_do("drop database if exists %s with (force)", database);
	*database = '\0';
}

int fixture_port(void)
{
	return port;
}

static void make(const char *template)
{
	fixture_stop();
	snprintf(database, sizeof database, "ibid_test_%d_%d", (int)getpid(), ++made);
	pg_server_do("create database %s template %s", database, template);
}

void fixture_database(void)
{
	make("template1");
}

const char *fixture_url(const char *user, int at_port, const char *query)
{
	snprintf(built, sizeof built, "postgres://%s@%s:%d/%s%s", user, host, at_port, database, query);
	return built;
}

const char *fixture_own_url(void)
{
	return fixture_url("postgres", port, "");
}

struct store *fixture_store(const char *url, unsigned connections, unsigned busy_ms)
{
	struct store *store = NULL;
	struct ibid_err err;
	struct store_options options = {
	    .url = url, .connections = connections, .busy_ms = busy_ms, .env = env_system()};
	if (store_postgres_open(&options, &store, &err))
		die(url, err.text);
	return store;
}

struct store *fixture_fresh(void)
{
	make(pg_server_template());
	return fixture_store(fixture_own_url(), 8, 1500);
}

PGconn *fixture_own_ids(void)
{
	PGconn *link = fixture_connect(admin_url); /* the same database for all programs */
	PGresult *result = PQexec(link, "select pg_advisory_lock(hashtext('transaction ids'))");
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		die("lock", PQerrorMessage(link));
	PQclear(result);
	return link;
}

bool fixture_exec(const char *sql)
{
	PGconn *link = fixture_connect(fixture_own_url());
	PGresult *result = PQexec(link, sql);
	ExecStatusType status = PQresultStatus(result);
	PQclear(result);
	PQfinish(link);
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

int64_t fixture_number(const char *sql)
{
	PGconn *link = fixture_connect(fixture_own_url());
	PGresult *result = PQexec(link, sql);
	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
		die(sql, PQerrorMessage(link));
	int64_t number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	PQfinish(link);
	return number;
}
