/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c -- is this server set up so that a reported commit is a kept promise (I10)? */
#include "store/postgres/postgres.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKEW_US_MAX = 1000000, SERVER_MAJOR_LEAST = 14 };

/* Autovacuum starts at its limit: older ids mean that it can't keep up. From the second age on the
 * server drops everything else to freeze (vacuum_failsafe_age), and stops writes 400 million later.
 */
static const char freeze_percent[] = "110";
enum { FREEZE_AGE_MAX = 1600000000 };

enum doctor_column {
	DOCTOR_VERSION,
	DOCTOR_SYNCHRONOUS,
	DOCTOR_FSYNC,
	DOCTOR_FULL_PAGES,
	DOCTOR_RECOVERY,
	DOCTOR_CONNECTIONS,
	DOCTOR_CLOCK,
	DOCTOR_ENCODING,
	DOCTOR_BACKEND
};

struct patient {
	struct pg_store *store;
	const PGresult *facts;
	int backend;                 /* as the connection was told */
	int64_t before_us, after_us; /* around the trip that read the server's clock */
	finding_fn *fn;
	void *user;
};

static bool is_off(const struct patient *p, int column)
{
	return strcmp(PQgetvalue(p->facts, 0, column), "off") == 0;
}

static void tell(const struct patient *p, bool wrong, enum finding_level level, const char *what,
                 const char *advice)
{
	p->fn(p->user, wrong ? level : FINDING_OK, what, wrong ? advice : "");
}

static void check_server(const struct patient *p)
{
	char what[96];
	const char *version = PQgetvalue(p->facts, 0, DOCTOR_VERSION);
	snprintf(what, sizeof what, "PostgreSQL %s", version);
	tell(p, atoi(version) < SERVER_MAJOR_LEAST, FINDING_REFUSE, what, "upgrade to 14 or later");
	bool standby = pg_cell_bool(p->facts, 0, DOCTOR_RECOVERY);
	tell(p, standby, FINDING_REFUSE,
	     standby ? "the server is in recovery" : "the server is the primary",
	     "connect to the primary; with several hosts in the URL ibid looks for it itself");
}

static bool check_encoding(const struct patient *p)
{
	char what[96];
	const char *encoding = PQgetvalue(p->facts, 0, DOCTOR_ENCODING);
	bool wrong = strcmp(encoding, "UTF8") != 0;
	snprintf(what, sizeof what, "encoding %s", encoding);
	tell(p, wrong, FINDING_REFUSE, what, "ibid needs UTF8: create another database with it");
	return !wrong;
}

static void check_durability(const struct patient *p)
{
	char what[96];
	snprintf(what, sizeof what, "synchronous_commit=%s",
	         PQgetvalue(p->facts, 0, DOCTOR_SYNCHRONOUS));
	tell(p, is_off(p, DOCTOR_SYNCHRONOUS), FINDING_REFUSE, what,
	     "a crash would lose commands that were answered: set it to on for ibid's role");
	snprintf(what, sizeof what, "fsync=%s", PQgetvalue(p->facts, 0, DOCTOR_FSYNC));
	tell(p, is_off(p, DOCTOR_FSYNC), FINDING_REFUSE, what,
	     "a crash would corrupt the database: set it to on");
	snprintf(what, sizeof what, "full_page_writes=%s", PQgetvalue(p->facts, 0, DOCTOR_FULL_PAGES));
	tell(p, is_off(p, DOCTOR_FULL_PAGES), FINDING_WARN, what,
	     "leave it on unless the file system never tears a page");
}

static void check_connections(const struct patient *p)
{
	char what[96];
	int64_t most = pg_cell_int(p->facts, 0, DOCTOR_CONNECTIONS);
	snprintf(what, sizeof what, "%u connections of the server's %" PRId64, p->store->pool.most,
	         most);
	/* Behind a pooling proxy the server's limit is not ours. */
	tell(p, !p->store->own.unnamed && p->store->pool.most >= most, FINDING_WARN, what,
	     "one process could take them all: lower connections, or raise max_connections");
}

/* A proxy that shares servers among clients makes up the process number that it tells them. */
static void check_pooler(const struct patient *p)
{
	bool pooled = p->backend != (int)pg_cell_int(p->facts, 0, DOCTOR_BACKEND);
	tell(p, pooled && !p->store->own.unnamed, FINDING_WARN,
	     pooled ? "a pooling proxy stands before the server" : "no proxy stands before the server",
	     "where it pools transactions, add statements=unnamed to the URL: a statement prepared on "
	     "one server is not known to the next");
}

static void check_clock(const struct patient *p)
{
	char what[96];
	int64_t server_us = pg_cell_int(p->facts, 0, DOCTOR_CLOCK), skew_us = 0;
	if (server_us < p->before_us)
		skew_us = server_us - p->before_us;
	else if (server_us > p->after_us)
		skew_us = server_us - p->after_us;
	snprintf(what, sizeof what, "the server's clock is %.3f s %s", (double)llabs(skew_us) / 1e6,
	         skew_us < 0 ? "behind" : "ahead");
	tell(p, llabs(skew_us) > SKEW_US_MAX, FINDING_WARN, what, "synchronise the clocks");
}

/* The statement names what is not there. */
static enum ibid_code check_missing(const struct patient *p, struct pg_call call, const char *fault,
                                    const char *fine, struct ibid_err *err)
{
	enum ibid_code code = pg_pool_query(p->store, &call, 1, err);
	int count = code ? 0 : PQntuples(call.result);
	for (int i = 0; i < count; i++) {
		char what[256];
		snprintf(what, sizeof what, "%s is missing or %s", PQgetvalue(call.result, i, 0), fault);
		p->fn(p->user, FINDING_REFUSE, what, "create it again as ibid's migrations do");
	}
	if (code == IBID_OK && count == 0)
		p->fn(p->user, FINDING_OK, fine, "");
	pg_release(&call, 1);
	return code;
}

static enum ibid_code check_freezing(const struct patient *p, struct ibid_err *err)
{
	const char *values[] = {freeze_percent};
	struct pg_call call = PG_CALL(DOCTOR_FREEZE, .values = values);
	enum ibid_code code = pg_pool_query(p->store, &call, 1, err);
	int count = code ? 0 : PQntuples(call.result);
	for (int i = 0; i < count; i++) {
		char what[192];
		int64_t age = pg_cell_int(call.result, i, 1);
		snprintf(what, sizeof what, "%s holds transaction ids that are %" PRId64 " old",
		         PQgetvalue(call.result, i, 0), age);
		p->fn(p->user, age > FREEZE_AGE_MAX ? FINDING_REFUSE : FINDING_WARN, what,
		      "at two billion the server stops all writes: run vacuum (freeze), and end what holds "
		      "it back (long transactions, prepared ones, replication slots)");
	}
	if (code == IBID_OK && count == 0)
		p->fn(p->user, FINDING_OK, "old transaction ids are frozen in time", "");
	pg_release(&call, 1);
	return code;
}

static enum ibid_code check_schema(const struct patient *p, struct ibid_err *err)
{
	char what[64];
	int version = 0;
	enum ibid_code code = pg_check_schema(&p->store->base, &version, err);
	if (code == IBID_SCHEMA) {
		p->fn(p->user, FINDING_REFUSE, err->text, "run ibid init");
		return IBID_OK;
	}
	if (code)
		return code;
	snprintf(what, sizeof what, "schema %d", version);
	p->fn(p->user, FINDING_OK, what, "");
	code = check_missing(p, PG_CALL(DOCTOR_INDEXES), "invalid", "all indexes are there", err);
	if (!code)
		code = check_missing(p, PG_CALL(DOCTOR_GUARDS), "switched off",
		                     "all triggers and row security are there", err);
	return code ? code : check_freezing(p, err);
}

enum ibid_code pg_doctor(struct store *base, finding_fn *fn, void *user, struct ibid_err *err)
{
	struct pg_call call = PG_CALL(DOCTOR);
	struct patient p = {.store = pg_store_of(base), .fn = fn, .user = user};
	struct pg_conn *conn = NULL;
	p.before_us = env_wall_us(p.store->env);
	enum ibid_code code = pg_pool_trip(p.store, &call, 1, &conn, err);
	p.after_us = env_wall_us(p.store->env);
	if (code)
		return code;
	p.backend = PQbackendPID(conn->link);
	pg_pool_give(p.store, conn);
	p.facts = call.result;
	check_server(&p);
	check_durability(&p);
	check_connections(&p);
	check_pooler(&p);
	check_clock(&p);
	if (check_encoding(&p)) /* in another one there is no schema of ours to look at */
		code = check_schema(&p, err);
	pg_release(&call, 1);
	return code;
}
