/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c -- what protection costs: the same work bare, unprotected and protected, side by side.
 *
 * Every variant inserts one payment. *bare* does nothing else; *unprotected* also writes an event
 * and an audit row of its own in one transaction; *protected* is ibid_submit of a command whose
 * script inserts the payment and emits the event. Rounds of the variants alternate, so that a slow
 * minute of the machine meets all of them; the figure is the median round, with the slowest and
 * fastest beside it, and the ratio the median of the ratios to the bare round just before. */
#include "base/canon.h"
#include "base/id.h"
#include "contract/payload.h"

#include <ibid.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 11, CALLERS_MAX = 64, VARIANTS = 4 };

static double round_seconds = 0.5;
static struct env *env;

struct target {
	const char *name; /* "sqlite", "postgres" */
	char url[512], path[256];
	struct ibid *ibid;
	bool stop;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench: %s: %s\n", what, why);
	exit(1);
}

static double now(void)
{
	return (double)env_steady_us(env) / 1e6;
}

/* ---- One caller ----------------------------------------------------------------------------- */

struct caller {
	struct target *target;
	int variant, number;
	sqlite3 *db;
	sqlite3_stmt *statements[5];
	PGconn *conn;
	uint64_t count, done;
	pthread_t thread;
};

static void lite_step(struct caller *caller, int index, const char *const *values, int count)
{
	sqlite3_stmt *statement = caller->statements[index];
	for (int i = 0; i < count; i++)
		sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_STATIC);
	if (sqlite3_step(statement) != SQLITE_DONE)
		die("sqlite", sqlite3_errmsg(caller->db));
	sqlite3_reset(statement);
}

static void pg_step(struct caller *caller, const char *name, const char *const *values, int count)
{
	PGresult *result = PQexecPrepared(caller->conn, name, count, values, NULL, NULL, 0);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		die("postgres", PQerrorMessage(caller->conn));
	PQclear(result);
}

static const char *const bare_sql[5] = {
    ("insert into payment (tenant, id, payer, payee, amount, currency) "
     "values ($1, $2, $3, $4, $5, $6)"),
    "insert into own_event (id, tenant, aggregate_id, type, payload) values ($1, $2, $3, $4, $5)",
    "insert into own_audit (id, tenant, actor, action, resource_id) values ($1, $2, $3, $4, $5)",
    "begin", "commit"};
static const char *const names[5] = {"payment", "event", "audit", "begin", "commit"};

static void connect_caller(struct caller *caller)
{
	struct target *target = caller->target;
	if (strcmp(target->name, "sqlite") == 0) {
		if (sqlite3_open(target->path, &caller->db) ||
		    sqlite3_exec(caller->db, "pragma synchronous=full; pragma journal_mode=wal", 0, 0, 0))
			die(target->path, sqlite3_errmsg(caller->db));
		sqlite3_busy_timeout(caller->db, 60000);
		for (int i = 0; i < 5; i++) {
			const char *sql = i == 3 ? "begin immediate" : bare_sql[i];
			if (sqlite3_prepare_v2(caller->db, sql, -1, &caller->statements[i], NULL))
				die(sql, sqlite3_errmsg(caller->db));
		}
		return;
	}
	caller->conn = PQconnectdb(target->url);
	for (int i = 0; i < 5; i++)
		PQclear(PQprepare(caller->conn, names[i], bare_sql[i], 0, NULL));
}

static void disconnect_caller(struct caller *caller)
{
	for (int i = 0; i < 5; i++)
		sqlite3_finalize(caller->statements[i]);
	sqlite3_close(caller->db);
	PQfinish(caller->conn);
}

static void insert_payment(struct caller *caller, const char *id)
{
	const char *values[6] = {"acme", id,   "DE02120300000000202051", "DE02500105170137075030",
	                         "12.5", "EUR"};
	if (caller->db)
		lite_step(caller, 0, values, 6);
	else
		pg_step(caller, names[0], values, 6);
}

static void insert_unprotected(struct caller *caller, const char *id)
{
	char event[UUID_TEXT_SIZE], audit[UUID_TEXT_SIZE];
	uuid_write(uuid_v7(env), event);
	uuid_write(uuid_v7(env), audit);
	const char *events[5] = {event, "acme", id, "PaymentCreated",
	                         "{\"amount\":12.5,\"currency\":\"EUR\"}"};
	const char *audits[5] = {audit, "acme", "u7", "create-payment", id};
	if (caller->db) {
		lite_step(caller, 3, NULL, 0);
		insert_payment(caller, id);
		lite_step(caller, 1, events, 5);
		lite_step(caller, 2, audits, 5);
		lite_step(caller, 4, NULL, 0);
	} else {
		pg_step(caller, names[3], NULL, 0);
		insert_payment(caller, id);
		pg_step(caller, names[1], events, 5);
		pg_step(caller, names[2], audits, 5);
		pg_step(caller, names[4], NULL, 0);
	}
}

static void submit(struct caller *caller, const char *key, bool duplicate)
{
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (ibid_submit(
	        caller->target->ibid,
	        IBID_COMMAND(
	                .tenant = "acme", .client = "bench", .actor = "u7", .operation = "pay",
	                .key = key,
	                .payload =
	                    "{\"from\":\"DE02120300000000202051\",\"to\":\"DE02500105170137075030\","
	                    "\"amount\":12.50,\"currency\":\"EUR\"}"),
	        &result, &err))
		die("ibid_submit", err.text);
	if (ibid_result_decision(result) != IBID_DECISION_EXECUTED ||
	    ibid_result_replayed(result) != duplicate)
		die("ibid_submit", ibid_decision_name(ibid_result_decision(result)));
	ibid_result_free(result);
}

static void *run_caller(void *user)
{
	struct caller *caller = user;
	char id[UUID_TEXT_SIZE], key[64];
	while (!__atomic_load_n(&caller->target->stop, __ATOMIC_RELAXED)) {
		uuid_write(uuid_v7(env), id);
		switch (caller->variant) {
		case 0: insert_payment(caller, id); break;
		case 1: insert_unprotected(caller, id); break;
		case 2: submit(caller, id, false); break;
		default:
			snprintf(key, sizeof key, "duplicate-%d-%d", caller->number, (int)(caller->count % 16));
			submit(caller, key, caller->count >= 16);
			caller->count++;
			break;
		}
		caller->done++;
	}
	return NULL;
}

/* ---- Rounds --------------------------------------------------------------------------------- */

static double run_round(struct target *target, struct caller *callers, int count)
{
	uint64_t done = 0;
	target->stop = false;
	for (int i = 0; i < count; i++)
		callers[i].done = 0;
	double began = now();
	for (int i = 0; i < count; i++) {
		if (pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]))
			die("thread", "can't start");
	}
	env_sleep_us(env, (int64_t)(round_seconds * 1e6));
	__atomic_store_n(&target->stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < count; i++) {
		pthread_join(callers[i].thread, NULL);
		done += callers[i].done;
	}
	return (double)done / (now() - began);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void compare(struct target *target, int callers_count)
{
	static const char *const titles[VARIANTS] = {"bare INSERT", "unprotected", "ibid_submit",
	                                             "replay"};
	static int run_number;
	struct caller callers[VARIANTS][CALLERS_MAX] = {0};
	double figures[VARIANTS][ROUNDS];
	for (int v = 0; v < VARIANTS; v++) {
		for (int i = 0; i < callers_count; i++) {
			callers[v][i] = (struct caller){.target = target, .variant = v, .number = ++run_number};
			if (v < 2)
				connect_caller(&callers[v][i]);
		}
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int v = 0; v < VARIANTS; v++)
			figures[v][round] = run_round(target, callers[v], callers_count);
	}
	double bare[ROUNDS], ratios[ROUNDS];
	memcpy(bare, figures[0], sizeof bare);
	for (int v = 0; v < VARIANTS; v++) {
		for (int round = 0; round < ROUNDS; round++)
			ratios[round] = figures[v][round] / bare[round];
		qsort(ratios, ROUNDS, sizeof *ratios, by_value);
		qsort(figures[v], ROUNDS, sizeof **figures, by_value);
		printf("%-9s %7d  %-12s %10.0f %8.2f   %6.0f .. %.0f\n", target->name, callers_count,
		       titles[v], figures[v][ROUNDS / 2], ratios[ROUNDS / 2], figures[v][0],
		       figures[v][ROUNDS - 1]);
		for (int i = 0; i < callers_count; i++)
			disconnect_caller(&callers[v][i]);
	}
	fflush(stdout);
}

/* ---- Stores --------------------------------------------------------------------------------- */

static void open_target(struct target *target)
{
	struct ibid_err err = {0};
	if (ibid_init(IBID_OPTIONS(.store = target->url, .contracts = BENCH_CONTRACTS), &err) ||
	    ibid_open(IBID_OPTIONS(.store = target->url, .contracts = BENCH_CONTRACTS, .busy_ms = 60000,
	                           .connections = CALLERS_MAX),
	              &target->ibid, &err))
		die(target->url, err.text);
}

static void bench_store(struct target *target)
{
	open_target(target);
	compare(target, 1);
	compare(target, 8);
	ibid_close(target->ibid);
}

static void admin(const char *sql)
{
	PGconn *conn = PQconnectdb(getenv("IBID_TEST_PG"));
	PGresult *result = PQexec(conn, sql);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		die(sql, PQerrorMessage(conn));
	PQclear(result);
	PQfinish(conn);
}

static void bench_sqlite(void)
{
	struct target target = {.name = "sqlite"};
	char dir[] = "/tmp/ibid-bench-XXXXXX", command[256];
	if (!mkdtemp(dir))
		die(dir, "can't make a directory");
	snprintf(target.path, sizeof target.path, "%s/bench.db", dir);
	snprintf(target.url, sizeof target.url, "sqlite:%s", target.path);
	bench_store(&target);
	snprintf(command, sizeof command, "rm -r %s", dir);
	if (system(command))
		die(dir, "can't remove it");
}

static void bench_postgres(void)
{
	struct target target = {.name = "postgres"};
	const char *base = getenv("IBID_TEST_PG");
	if (!base)
		die("IBID_TEST_PG", "not set; run through tools/with-postgres");
	admin("create database ibid_bench");
	snprintf(target.url, sizeof target.url, "%.*s/ibid_bench", (int)(strrchr(base, '/') - base),
	         base);
	bench_store(&target);
	admin("drop database ibid_bench with (force)");
}

/* ---- Canonical form and fingerprint --------------------------------------------------------- */

static const char document[] =
    "{\"from\":\"DE02120300000000202051\",\"to\":\"DE02500105170137075030\",\"amount\":12.50,"
    "\"currency\":\"EUR\","
    "\"note\":\"Rechnung 4711 / 2026-11, "
    "K\\u00f6ln\",\"lines\":[{\"sku\":\"A-1\",\"qty\":3,\"price\":1.10},"
    "{\"sku\":\"B-2\",\"qty\":1,\"price\":9.20}],\"requestedAt\":\"2026-11-15T10:00:00+01:00\"}";

static void bench_canonical(void)
{
	uint64_t count = 0;
	double began = now(), spent;
	do {
		for (int i = 0; i < 1000; i++, count++) {
			char *text;
			size_t size;
			if (ibid_canonical(document, sizeof document - 1, &text, &size, NULL))
				die("canonical", "failed");
			ibid_free(text);
		}
	} while ((spent = now() - began) < round_seconds);
	printf("canonical form     %8.1f MB/s   (%zu-byte payment)\n",
	       (double)count * (sizeof document - 1) / spent / 1e6, sizeof document - 1);
}

static void bench_fingerprint(void)
{
	static const struct contract contract = {.name = "pay", .version = 1};
	const struct sender sender = {"acme", "bench", "u7", ""};
	uint64_t count = 0;
	double began = now(), spent;
	do {
		for (int i = 0; i < 1000; i++, count++) {
			struct arena arena = {0};
			struct json *payload;
			struct sha256 hash;
			struct ibid_err err;
			if (json_read(&arena, document, sizeof document - 1, 0, &payload, &err) ||
			    fingerprint_of(&arena, &contract, &sender, payload, &hash, &err))
				die("fingerprint", err.text);
			arena_release(&arena);
		}
	} while ((spent = now() - began) < round_seconds);
	printf("fingerprints       %8.0f /s     (reading the payload included)\n",
	       (double)count / spent);
}

int main(void)
{
	env = env_system();
	if (getenv("BENCH_SECONDS"))
		round_seconds = atof(getenv("BENCH_SECONDS"));
	printf("store     callers  variant           per second    ratio   slowest .. fastest of %d "
	       "rounds of %.1f s\n",
	       ROUNDS, round_seconds);
	const char *only = getenv("BENCH_STORE"); /* sqlite, postgres; both without it */
	if (!only || strcmp(only, "sqlite") == 0)
		bench_sqlite();
	if (!only || strcmp(only, "postgres") == 0)
		bench_postgres();
	bench_canonical();
	bench_fingerprint();
	return 0;
}
