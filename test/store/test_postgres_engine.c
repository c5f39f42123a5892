/* SPDX-License-Identifier: Apache-2.0 */
/* What only PostgreSQL can do wrong: connections that die, commits whose answer is lost, roles,
 * proxies, plans that outlive their tables, handlers that end the transaction. */
#include "store/pg_fixture.h"
#include "store/postgres/postgres.h"
#include "store/proxy.h"
#include "support/scratch.h"

#include <pthread.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- A command, as the ledger would run it -------------------------------------------------- */

static const char *const emits[] = {"PaymentCreated"};

static struct identity identity(const char *key)
{
	return (struct identity){"acme", "pay", "", key};
}

static enum ibid_code claim(struct store *store, struct arena *arena, const char *key,
                            struct claim *ret, struct ibid_err *err)
{
	struct identity id = identity(key);
	struct work_context context = {
	    .command_id = uuid_v7(env_system()),
	    .tenant = "acme",
	    .emits = emits,
	    .emit_count = 1,
	    .now_us = env_wall_us(env_system()),
	};
	return store->ops->claim(store, arena, &id, &context, ret, err);
}

static struct tx *must_claim(struct store *store, struct arena *arena, const char *key)
{
	struct claim got;
	struct ibid_err err;
	if (claim(store, arena, key, &got, &err))
		fail_msg("claim: %s", err.text);
	assert_int_equal(got.kind, CLAIM_FREE);
	assert_non_null(got.tx);
	return got.tx;
}

static struct command_row completed(struct tx *tx, const char *key)
{
	struct command_row row = {
	    .identity = identity(key),
	    .state = COMMAND_COMPLETED,
	    .scheme = 1,
	    .contract_version = 1,
	    .status = 201,
	    .body = "{\"ok\":true}",
	    .body_size = 11,
	    .audit_id = uuid_v7(env_system()),
	    .attempts = 1,
	    .created_us = env_wall_us(env_system()),
	};
	(void)uuid_read(pg_tx_of(tx)->command_id, &row.id);
	return row;
}

static void put(struct store *store, struct tx *tx, const char *key)
{
	struct ibid_err err;
	struct command_row row = completed(tx, key);
	struct audit_row audit = {
	    .id = row.audit_id,
	    .command_id = row.id,
	    .tenant = "acme",
	    .operation = "pay",
	    .fact = "paid",
	    .outcome = "executed",
	    .contract_version = 1,
	    .at_us = row.created_us,
	};
	assert_int_equal(store_put_audit(tx, &audit, &err), IBID_OK);
	assert_int_equal(store->ops->put_command(tx, &row, NULL, &err), IBID_OK);
}

static enum ibid_code put_and_commit(struct store *store, struct arena *arena, struct tx *tx,
                                     const char *key, struct ibid_err *err)
{
	struct outcome outcome;
	put(store, tx, key);
	enum ibid_code code = store->ops->commit(&tx, arena, &outcome, err);
	assert_null(tx);
	return code;
}

static void submit(struct store *store, struct arena *arena, const char *key)
{
	struct ibid_err err;
	if (put_and_commit(store, arena, must_claim(store, arena, key), key, &err))
		fail_msg("commit: %s", err.text);
}

static enum ibid_code run(struct store *store, struct arena *arena, struct tx *tx, const char *sql,
                          struct outcome *ret, struct ibid_err *err)
{
	struct script *script;
	*ret = (struct outcome){0};
	if (store->ops->make_script(store, "f.sql", sql, NULL, 0, &script, err))
		fail_msg("%s", err->text);
	enum ibid_code code = store->ops->run_script(tx, arena, script, NULL, ret, err);
	store->ops->free_script(store, script);
	return code;
}

static enum claim_kind resolve(struct store *store, struct arena *arena, const char *key,
                               int64_t wait_us)
{
	struct claim got;
	struct ibid_err err;
	struct identity id = identity(key);
	if (store->ops->resolve(store, arena, &id, wait_us, &got, &err))
		fail_msg("resolve: %s", err.text);
	assert_null(got.tx);
	return got.kind;
}

static int64_t rows_of(const char *key)
{
	char sql[256];
	snprintf(sql, sizeof sql, "select count(*) from ibid.command where key = '%s'", key);
	return fixture_number(sql);
}

/* ---- Statements ----------------------------------------------------------------------------- */

static void every_sql_file_prepares_with_the_parameters_that_we_send(void **state)
{
	struct store *store = fixture_fresh();
	PGconn *link = fixture_connect(fixture_own_url());
	(void)state;
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		char name[16];
		snprintf(name, sizeof name, "s%d", i);
		PGresult *result = PQprepare(link, name, pg_statements[i].sql, 0, NULL);
		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			fail_msg("%s%s", pg_statements[i].sql, PQerrorMessage(link));
		PQclear(result);
		result = PQdescribePrepared(link, name);
		if (PQnparams(result) != pg_statements[i].param_count)
			fail_msg("%d parameters: %s", PQnparams(result), pg_statements[i].sql);
		PQclear(result);
	}
	PQfinish(link);
	store_close(store);
}

/* A plan is made once and kept: one that is wrong for a table still empty stays wrong as it grows.
 */
static void look_ups_are_planned_over_their_index_also_on_empty_tables(void **state)
{
#define ID "'00000000-0000-7000-8000-000000000001'" /* in the default partition */
	static const struct {
		enum pg_statement_name name;
		const char *arguments, *index;
	} plans[] = {
	    {STATEMENT_CLAIM_FIND, "'t', 'o', 's', 'k', null", "using command_pkey"},
	    {STATEMENT_command_get, "'t', 'o', 's', 'k'", "using command_pkey"},
	    {STATEMENT_command_get_by_id, "'t', null", "using command_tenant_id_key"},
	    {STATEMENT_command_list, "'t', null, null, null, null, null, 9", "command_tenant_id_key"},
	    {STATEMENT_command_list_unknown, "'t', 'o', " ID ", 9", "command_lease"},
	    {STATEMENT_exception_resolve, "now(), 'r', 'b', 'n', 't', 'q', 't', 's'",
	     "using exception_open_key"},
	    {STATEMENT_event_range, "'t', " ID ", " ID ", 9", "event_default_pkey"},
	    {STATEMENT_audit_of_command, "'t', " ID ", 9", "audit_default_pkey"},
	};
	struct store *store = fixture_fresh();
	PGconn *link = fixture_connect(fixture_own_url());
	(void)state;
	PQclear(PQexec(link, "set plan_cache_mode = force_generic_plan"));
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		char sql[256], plan[4096] = "";
		snprintf(sql, sizeof sql, "explain execute p%zu (%s)", i, plans[i].arguments);
		char name[8];
		snprintf(name, sizeof name, "p%zu", i);
		PQclear(PQprepare(link, name, pg_statements[plans[i].name].sql, 0, NULL));
		PGresult *result = PQexec(link, sql);
		for (int row = 0; row < PQntuples(result); row++)
			strncat(plan, PQgetvalue(result, row, 0), sizeof plan - strlen(plan) - 1);
		PQclear(result);
		if (!strstr(plan, plans[i].index))
			fail_msg("%s: %s", plans[i].index, *plan ? plan : PQerrorMessage(link));
	}
	PQfinish(link);
	store_close(store);
}

static void the_lock_key_is_the_same_in_c_and_in_sql(void **state)
{
	struct store *store = fixture_fresh();
	struct identity id = {"acme", "pay", "cli\xC3\xABnt", "k-1"};
	(void)state;
	assert_int_equal(pg_lock_key(&id),
	                 fixture_number("select ibid.lock_key('acme', 'pay', 'cliënt', 'k-1')"));
	struct identity other = {"acmep", "ay", "cli\xC3\xABnt", "k-1"};
	assert_int_not_equal(pg_lock_key(&id), pg_lock_key(&other));
	store_close(store);
}

/* ---- Opening -------------------------------------------------------------------------------- */

static enum ibid_code open_code(const char *url, struct ibid_err *err)
{
	struct store *store = NULL;
	struct store_options options = {.url = url, .env = env_system()};
	enum ibid_code code = store_postgres_open(&options, &store, err);
	store_close(store);
	return code;
}

static void an_error_of_opening_says_what_is_wrong_and_no_password(void **state)
{
	struct ibid_err err;
	char url[256];
	(void)state;
	fixture_database();
	assert_int_equal(open_code("postgres://u:s3cret%zz@h/db", &err), IBID_INVALID);
	assert_null(strstr(err.text, "s3cret"));
	assert_int_equal(open_code("postgres://u:a?b@h/db?statements=maybe", &err), IBID_INVALID);
	assert_non_null(strstr(err.text, "statements"));
	snprintf(url, sizeof url, "postgres://postgres:s3cret@127.0.0.1:%d/no_such_database",
	         fixture_port());
	assert_int_equal(open_code(url, &err), IBID_NOT_FOUND);
	assert_non_null(strstr(err.text, "no_such_database"));
	assert_null(strstr(err.text, "s3cret"));
	assert_int_equal(open_code(fixture_url("nobody_such", fixture_port(), ""), &err), IBID_DENIED);
	assert_int_equal(open_code(fixture_url("nobody:s3cret", 1, ""), &err), IBID_UNAVAILABLE);
	assert_null(strstr(err.text, "s3cret"));
}

/* ---- Connections that die ------------------------------------------------------------------- */

static void kill_backends(void)
{
	/* Waits until they are gone. */
	assert_true(fixture_exec("select pg_terminate_backend(pid, 5000) from pg_stat_activity where "
	                         "datname = current_database() and pid <> pg_backend_pid()"));
}

static void a_stale_connection_is_replaced_without_the_caller_noticing(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct store *store = fixture_fresh();
	struct tx *txs[3];
	(void)state;
	/* Three connections in the pool, all dead. */
	txs[0] = must_claim(store, &arena, "a");
	txs[1] = must_claim(store, &arena, "b");
	txs[2] = must_claim(store, &arena, "c");
	for (int i = 0; i < 3; i++)
		store->ops->rollback(&txs[i]);
	kill_backends();
	submit(store, &arena, "k");
	kill_backends();
	struct key_conflict_row evidence = {.tenant = "acme", .client = "", .actor = "", .last_us = 1};
	assert_int_equal(store_put_evidence(store, &evidence, &err), IBID_OK);
	assert_int_equal(rows_of("k"), 1);
	store_close(store);
	arena_release(&arena);
}

static void a_connection_lost_before_the_commit_is_unavailable_and_nothing_is_done(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct store *store = fixture_fresh();
	(void)state;
	struct tx *tx = must_claim(store, &arena, "k");
	kill_backends();
	assert_int_equal(run(store, &arena, tx, "select 200 as status", &outcome, &err),
	                 IBID_UNAVAILABLE);
	assert_int_equal(put_and_commit(store, &arena, tx, "k", &err), IBID_UNAVAILABLE);
	submit(store, &arena, "k");
	assert_int_equal(rows_of("k"), 1);
	store_close(store);
	arena_release(&arena);
}

static void a_commit_on_a_dead_connection_is_unknown_until_it_is_resolved(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct store *store = fixture_fresh();
	(void)state;
	struct tx *tx = must_claim(store, &arena, "k");
	kill_backends();
	assert_int_equal(put_and_commit(store, &arena, tx, "k", &err), IBID_UNKNOWN);
	assert_int_equal(err.next, IBID_NEXT_SAME_KEY);
	assert_int_equal(resolve(store, &arena, "k", 1000000), CLAIM_FREE);
	store_close(store);
	arena_release(&arena);
}

/* ---- Lost commits (I7) ---------------------------------------------------------------------- */

struct lost {
	struct proxy *proxy;
	struct store *direct, *proxied;
	struct arena arena;
};

static struct lost lost_new(const char *query)
{
	struct lost lost = {.direct = fixture_fresh(), .proxy = proxy_new(fixture_port())};
	char full[128];
	snprintf(full, sizeof full, "?sslmode=disable&gssencmode=disable%s", query);
	lost.proxied = fixture_store(fixture_url("postgres", proxy_port(lost.proxy), full), 4, 1500);
	return lost;
}

static void lost_free(struct lost *lost)
{
	store_close(lost->proxied);
	store_close(lost->direct);
	proxy_free(lost->proxy);
	arena_release(&lost->arena);
}

static void check_lost(const char *query, enum proxy_trick trick, enum claim_kind found)
{
	struct lost lost = lost_new(query);
	struct ibid_err err;
	submit(lost.proxied, &lost.arena, "before"); /* everything is prepared now */
	struct tx *tx = must_claim(lost.proxied, &lost.arena, "k");
	proxy_play(lost.proxy, trick);
	assert_int_equal(put_and_commit(lost.proxied, &lost.arena, tx, "k", &err), IBID_UNKNOWN);
	assert_int_equal(resolve(lost.proxied, &lost.arena, "k", 5000000), found);
	assert_int_equal(rows_of("k"), found == CLAIM_FOUND);
	lost_free(&lost);
}

static void a_commit_whose_answer_is_lost_is_unknown_and_then_found(void **state)
{
	(void)state;
	check_lost("", PROXY_DROP_ANSWER, CLAIM_FOUND);
	check_lost("&statements=unnamed", PROXY_DROP_ANSWER, CLAIM_FOUND);
}

static void a_client_cut_off_at_the_commit_waits_for_it_and_finds_it(void **state)
{
	(void)state;
	check_lost("", PROXY_HANG_UP, CLAIM_FOUND);
}

static void a_commit_that_never_arrived_is_unknown_and_then_found_not_done(void **state)
{
	(void)state;
	check_lost("", PROXY_CUT, CLAIM_FREE);
}

static void resolve_waits_for_the_twin_and_gives_up_in_time(void **state)
{
	struct arena arena = {0};
	struct store *store = fixture_fresh();
	(void)state;
	struct tx *tx = must_claim(store, &arena, "k");
	assert_int_equal(resolve(store, &arena, "k", 50000), CLAIM_BUSY);
	assert_int_equal(resolve(store, &arena, "k", 0), CLAIM_BUSY);
	store->ops->rollback(&tx);
	assert_int_equal(resolve(store, &arena, "k", 50000), CLAIM_FREE);
	store_close(store);
	arena_release(&arena);
}

static void resolve_keeps_trying_to_connect_until_its_time_is_over(void **state)
{
	struct env_virtual clock;
	struct arena arena = {0};
	struct ibid_err err;
	struct claim got;
	struct identity id = identity("k");
	struct lost lost = lost_new("");
	(void)state;
	env_virtual_init(&clock, 1, 1);
	pg_store_of(lost.proxied)->env = &clock.env;
	proxy_stop(lost.proxy);
	assert_int_equal(lost.proxied->ops->resolve(lost.proxied, &arena, &id, 300000, &got, &err),
	                 IBID_UNAVAILABLE);
	assert_true(env_steady_us(&clock.env) >= 300000);
	lost_free(&lost);
	arena_release(&arena);
}

static void a_claim_and_a_commit_are_one_round_trip_each(void **state)
{
	struct lost lost = lost_new("");
	struct ibid_err err;
	struct outcome outcome;
	struct script *script;
	(void)state;
	submit(lost.proxied, &lost.arena, "before");
	assert_int_equal(lost.proxied->ops->make_script(lost.proxied, "f.sql",
	                                                "select 1; select 2; select 200 as status",
	                                                NULL, 0, &script, &err),
	                 IBID_OK); /* asks the server what it answers with: trips of its own */
	unsigned from = proxy_syncs(lost.proxy);
	struct tx *tx = must_claim(lost.proxied, &lost.arena, "k");
	assert_int_equal(proxy_syncs(lost.proxy) - from, 1);
	assert_int_equal(lost.proxied->ops->run_script(tx, &lost.arena, script, NULL, &outcome, &err),
	                 IBID_OK);
	assert_int_equal(proxy_syncs(lost.proxy) - from, 2);
	assert_int_equal(put_and_commit(lost.proxied, &lost.arena, tx, "k", &err), IBID_OK);
	assert_int_equal(proxy_syncs(lost.proxy) - from, 3);
	lost.proxied->ops->free_script(lost.proxied, script);
	lost_free(&lost);
}

/* ---- Handlers that misbehave ---------------------------------------------------------------- */

static enum ibid_code after_lending(struct store *store, struct arena *arena, const char *key,
                                    const char *sql, struct ibid_err *err)
{
	struct tx *tx = must_claim(store, arena, key);
	PGconn *link = store->ops->lend(tx, true);
	PQclear(PQexec(link, sql));
	(void)store->ops->lend(tx, false);
	return put_and_commit(store, arena, tx, key, err);
}

static void a_handler_that_ends_the_transaction_is_noticed(void **state)
{
	static const char *const ends[] = {
	    "commit",           "rollback",
	    "commit and chain", "commit; begin",
	    "rollback; begin",  "commit; begin; select set_config('ibid.command_id', 'x', true)",
	};
	struct arena arena = {0};
	struct ibid_err err;
	struct store *store = fixture_fresh();
	(void)state;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		if (after_lending(store, &arena, "k", ends[i], &err) != IBID_MISUSE)
			fail_msg("%s: %s", ends[i], err.text);
		assert_string_equal(err.text, "the handler ended the transaction");
		assert_int_equal(rows_of("k"), 0);
		assert_int_equal(fixture_number("select count(*) from ibid.audit"), 0);
	}
	store_close(store);
	arena_release(&arena);
}

static enum ibid_code checked(struct store *store, struct arena *arena, const char *sql,
                              struct ibid_err *err)
{
	struct tx *tx = must_claim(store, arena, "k");
	PGconn *link = store->ops->lend(tx, true);
	PQclear(PQexec(link, sql));
	(void)store->ops->lend(tx, false);
	enum ibid_code code = store->ops->check_tx(tx, err);
	store->ops->rollback(&tx);
	return code;
}

static void a_transaction_tells_whether_its_handler_ended_it(void **state)
{
	static const struct {
		const char *sql;
		enum ibid_code code;
	} cases[] = {
	    {"select 1", IBID_OK},
	    {"savepoint a; rollback to a", IBID_OK},
	    {"select 1/0", IBID_OK},
	    {"commit", IBID_MISUSE},
	    {"rollback", IBID_MISUSE},
	    {"commit; begin", IBID_MISUSE},
	    {"commit and chain", IBID_MISUSE},
	};
	struct arena arena = {0};
	struct ibid_err err;
	struct store *store = fixture_fresh();
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (checked(store, &arena, cases[i].sql, &err) != cases[i].code)
			fail_msg("%s: %s", cases[i].sql, err.text);
	}
	submit(store, &arena, "k"); /* the connections are fit for more */
	store_close(store);
	arena_release(&arena);
}

/* For those who wait for each other: a busy machine does not decide what they are told. */
enum { PATIENT_MS = 20000 };

static struct store *fresh_and_patient(void)
{
	store_close(fixture_fresh());
	return fixture_store(fixture_own_url(), 8, PATIENT_MS);
}

struct locking {
	struct store *store;
	struct tx *tx;
	enum ibid_code code;
	int64_t seen;
	struct ibid_err err;
};

static void *lock_in_thread(void *user)
{
	struct locking *self = user;
	self->code = self->store->ops->lock_row(self->tx, "r", &self->err);
	self->seen = rows_of("first");
	return NULL;
}

static void a_row_that_is_held_is_waited_for_and_then_its_commit_is_seen(void **state) /* A07 */
{
	struct arena arena = {0};
	struct ibid_err err;
	pthread_t thread;
	struct store *store = fresh_and_patient();
	(void)state;
	struct tx *tx = must_claim(store, &arena, "first");
	struct locking waiting = {.store = store, .tx = must_claim(store, &arena, "second")};
	assert_int_equal(store->ops->lock_row(tx, "r", &err), IBID_OK);
	pthread_create(&thread, NULL, lock_in_thread, &waiting);
	int64_t until_us = env_steady_us(env_system()) + PATIENT_MS * INT64_C(1000);
	while (!fixture_number("select count(*) from pg_locks join pg_stat_activity using (pid) "
	                       "where not granted and datname = current_database()"))
		assert_true(env_steady_us(env_system()) < until_us);
	assert_int_equal(put_and_commit(store, &arena, tx, "first", &err), IBID_OK);
	pthread_join(thread, NULL);
	assert_int_equal(waiting.code, IBID_OK);
	assert_int_equal(waiting.seen, 1);
	store->ops->rollback(&waiting.tx);
	store_close(store);
	arena_release(&arena);
}

static void a_row_that_is_held_too_long_is_busy(void **state) /* A07 */
{
	struct arena arena = {0};
	struct ibid_err err;
	(void)state;
	store_close(fixture_fresh());
	struct store *store = fixture_store(fixture_own_url(), 2, 50);
	struct tx *tx = must_claim(store, &arena, "k"), *other = must_claim(store, &arena, "l");
	assert_int_equal(store->ops->lock_row(tx, "r", &err), IBID_OK);
	assert_int_equal(store->ops->lock_row(other, "r", &err), IBID_BUSY);
	store->ops->rollback(&other);
	store->ops->rollback(&tx);
	other = must_claim(store, &arena, "l");
	assert_int_equal(store->ops->lock_row(other, "r", &err), IBID_OK);
	store->ops->rollback(&other);
	store_close(store);
	arena_release(&arena);
}

static void a_handler_that_leaves_the_transaction_failed_has_failed(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct store *store = fixture_fresh();
	(void)state;
	assert_int_equal(after_lending(store, &arena, "k", "select 1/0", &err), IBID_FAILED);
	assert_int_equal(rows_of("k"), 0);
	assert_int_equal(after_lending(store, &arena, "k", "savepoint a; select 1/0", &err),
	                 IBID_FAILED);
	submit(store, &arena, "k");
	store_close(store);
	arena_release(&arena);
}

/* The server notices a closed connection when it next reads from it: until then it holds its locks.
 */
static void await_unlocked(void)
{
	int64_t until_us = env_steady_us(env_system()) + 10000000;
	while (fixture_number("select count(*) from pg_locks join pg_database as d on d.oid = database "
	                      "where locktype = 'advisory' and datname = current_database()"))
		assert_true(env_steady_us(env_system()) < until_us);
}

static void a_handler_that_leaves_results_unread_is_misuse(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct store *store = fixture_fresh();
	(void)state;
	struct tx *tx = must_claim(store, &arena, "k");
	PGconn *link = store->ops->lend(tx, true);
	assert_true(PQsendQuery(link, "select pg_sleep(0)"));
	(void)store->ops->lend(tx, false);
	assert_int_equal(put_and_commit(store, &arena, tx, "k", &err), IBID_MISUSE);
	await_unlocked();
	submit(store, &arena, "k");
	store_close(store);
	arena_release(&arena);
}

static void statements_of_a_lent_connection_commit_with_the_command(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct store *store = fixture_fresh();
	(void)state;
	assert_true(fixture_exec("create table t (a int)"));
	assert_int_equal(after_lending(store, &arena, "k",
	                               "insert into t values (1); select ibid.emit('payment', 'p1', "
	                               "'PaymentCreated', '{}')",
	                               &err),
	                 IBID_OK);
	assert_int_equal(fixture_number("select count(*) from t"), 1);
	assert_int_equal(fixture_number("select count(*) from ibid.event"), 1);
	store_close(store);
	arena_release(&arena);
}

static void a_lent_connection_that_was_lost_has_committed_nothing(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct store *store = fixture_fresh();
	(void)state;
	struct tx *tx = must_claim(store, &arena, "k");
	PGconn *link = store->ops->lend(tx, true);
	kill_backends();
	PQclear(PQexec(link, "select 1"));
	(void)store->ops->lend(tx, false);
	assert_int_equal(put_and_commit(store, &arena, tx, "k", &err), IBID_UNAVAILABLE);
	store_close(store);
	arena_release(&arena);
}

/* ---- What a script leaves behind ------------------------------------------------------------ */

static void check_nothing_is_left(struct store *store, const char *sql, const char *check)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	for (int committed = 0; committed < 2; committed++) {
		char key[16];
		snprintf(key, sizeof key, "%s", committed ? "committed" : "rolled back");
		assert_true(fixture_exec("delete from ibid.command"));
		struct tx *tx = must_claim(store, &arena, key);
		if (run(store, &arena, tx, sql, &outcome, &err))
			fail_msg("%s: %s", sql, err.text);
		if (!committed)
			store->ops->rollback(&tx);
		else if (put_and_commit(store, &arena, tx, key, &err))
			fail_msg("%s: %s", sql, err.text);
		tx = must_claim(store, &arena, "next");
		if (run(store, &arena, tx, check, &outcome, &err))
			fail_msg("%s: %s", check, err.text);
		if (outcome.status != 200)
			fail_msg("left behind: %s", sql);
		store->ops->rollback(&tx);
	}
	arena_release(&arena);
}

static void what_a_script_does_to_its_session_does_not_reach_the_next_command(void **state)
{
	struct store *setup = fixture_fresh();
	struct store *store = fixture_store(fixture_own_url(), 2, 1500);
	const char *real = "select status from payment",
	           *path = "select case when current_setting('search_path') = '\"$user\", public' then "
	                   "200 else 500 end "
	                   "as status";
	(void)state;
	assert_true(fixture_exec("create table payment (status int)"));
	assert_true(fixture_exec("insert into payment values (200)"));
	check_nothing_is_left(store, "select 500 as status into temp payment", real);
	check_nothing_is_left(store, "do $$ begin create temp table payment (status int); end $$",
	                      real);
	check_nothing_is_left(store,
	                      "select set_config('search_path', 'ibid', false) is null as x; "
	                      "select 200 as status",
	                      path);
	check_nothing_is_left(store, "do $$ begin set search_path = ibid; end $$", path);
	check_nothing_is_left(
	    store, "do $$ begin set session authorization ibid_service; end $$",
	    "select case when session_user = 'ibid_service' then 500 else 200 end as status");
	store_close(store);
	store_close(setup);
}

/* Settings end with the transaction, and so are looked at where they decide: in a constraint that
 * is deferred to the commit. */
static void a_commit_is_durable_whatever_the_default_or_the_handler_says(void **state) /* I10 */
{
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	char sql[128];
	struct store *setup = fixture_fresh();
	(void)state;
	assert_true(fixture_exec("create table seen (setting text)"));
	assert_true(fixture_exec(
	    "create function note() returns trigger language plpgsql as $$ begin "
	    "insert into seen values (current_setting('synchronous_commit')); return null; end $$"));
	assert_true(fixture_exec("create constraint trigger late after insert on ibid.command "
	                         "deferrable initially deferred for each row execute function note()"));
	PGconn *link = fixture_connect(fixture_own_url());
	snprintf(sql, sizeof sql, "alter database %s set synchronous_commit = off", PQdb(link));
	PQfinish(link);
	assert_true(fixture_exec(sql));
	struct store *store = fixture_store(fixture_own_url(), 2, 1500);
	struct tx *tx = must_claim(store, &arena, "a");
	const char *ask = "select case current_setting('synchronous_commit') when 'on' then 200 "
	                  "else 500 end as status";
	assert_int_equal(run(store, &arena, tx, ask, &outcome, &err), IBID_OK);
	assert_int_equal(outcome.status, 200);
	assert_int_equal(put_and_commit(store, &arena, tx, "a", &err), IBID_OK);
	tx = must_claim(store, &arena, "b");
	assert_int_equal(run(store, &arena, tx,
	                     "select set_config('synchronous_commit', 'off', true) = 'off' as x; "
	                     "select 200 as status",
	                     &outcome, &err),
	                 IBID_OK);
	assert_int_equal(put_and_commit(store, &arena, tx, "b", &err), IBID_OK);
	assert_int_equal(fixture_number("select count(*) from seen where setting = 'on'"), 2);
	assert_int_equal(fixture_number("select count(*) from seen"), 2);
	store_close(store);
	store_close(setup);
	arena_release(&arena);
}

/* ---- Locks ---------------------------------------------------------------------------------- */

struct updater {
	struct store *store;
	const char *key, *first, *second;
	pthread_barrier_t *both;
	enum ibid_code code;
};

static void *update_two(void *user)
{
	struct updater *u = user;
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct claim got;
	u->code = claim(u->store, &arena, u->key, &got, &err);
	if (u->code == IBID_OK)
		u->code = run(u->store, &arena, got.tx, u->first, &outcome, &err);
	pthread_barrier_wait(u->both);
	if (u->code == IBID_OK)
		u->code = run(u->store, &arena, got.tx, u->second, &outcome, &err);
	u->store->ops->rollback(&got.tx);
	arena_release(&arena);
	return NULL;
}

static void one_of_two_in_a_deadlock_is_told_to_retry(void **state)
{
	struct store *store = fresh_and_patient(); /* the server looks for one after a second */
	pthread_barrier_t both;
	pthread_t thread;
	(void)state;
	assert_true(fixture_exec("create table t (a int primary key, b int)"));
	assert_true(fixture_exec("insert into t values (1, 0), (2, 0)"));
	const char *one = "update t set b = b + 1 where a = 1",
	           *two = "update t set b = b + 1 where a = 2";
	pthread_barrier_init(&both, NULL, 2);
	struct updater a = {store, "a", one, two, &both, IBID_OK},
	               b = {store, "b", two, one, &both, IBID_OK};
	pthread_create(&thread, NULL, update_two, &b);
	update_two(&a);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&both);
	assert_int_equal((a.code == IBID_RETRY) + (b.code == IBID_RETRY), 1);
	assert_int_equal((a.code == IBID_OK) + (b.code == IBID_OK), 1);
	store_close(store);
}

static void a_serialization_failure_is_told_to_retry(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct store *store = fixture_fresh();
	(void)state;
	struct tx *tx = must_claim(store, &arena, "k");
	assert_int_equal(
	    run(store, &arena, tx, "do $$ begin raise sqlstate '40001'; end $$", &outcome, &err),
	    IBID_RETRY);
	store->ops->rollback(&tx);
	store_close(store);
	arena_release(&arena);
}

static void a_locked_business_row_is_busy_and_not_an_endless_wait(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct store *setup = fixture_fresh();
	struct store *store = fixture_store(fixture_own_url(), 4, 50);
	(void)state;
	assert_true(fixture_exec("create table t (a int)"));
	PGconn *other = fixture_connect(fixture_own_url());
	PQclear(PQexec(other, "begin; lock table t"));
	struct tx *tx = must_claim(store, &arena, "k");
	assert_int_equal(run(store, &arena, tx, "select 1;\nselect a from t", &outcome, &err),
	                 IBID_BUSY);
	store->ops->rollback(&tx);
	PQfinish(other);
	store_close(store);
	store_close(setup);
	arena_release(&arena);
}

static void twins_of_a_completed_command_all_get_its_row(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct claim got;
	struct store *store = fixture_fresh();
	struct identity id = identity("k");
	char sql[128];
	(void)state;
	submit(store, &arena, "k");
	/* Somebody else is looking at it just now. */
	PGconn *other = fixture_connect(fixture_own_url());
	snprintf(sql, sizeof sql, "begin; select pg_advisory_xact_lock(%lld)",
	         (long long)pg_lock_key(&id));
	PQclear(PQexec(other, sql));
	assert_int_equal(claim(store, &arena, "k", &got, &err), IBID_OK);
	assert_int_equal(got.kind, CLAIM_FOUND);
	assert_null(got.tx);
	assert_string_equal(got.row.body, "{\"ok\":true}");
	PQfinish(other);
	store_close(store);
	arena_release(&arena);
}

static void a_full_pool_is_busy_and_recovers(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct claim got;
	struct store *setup = fixture_fresh();
	struct store *store = fixture_store(fixture_own_url(), 2, 50);
	(void)state;
	struct tx *a = must_claim(store, &arena, "a"), *b = must_claim(store, &arena, "b");
	assert_int_equal(claim(store, &arena, "c", &got, &err), IBID_BUSY);
	store->ops->rollback(&a);
	a = must_claim(store, &arena, "c");
	store->ops->rollback(&a);
	store->ops->rollback(&b);
	store_close(store);
	store_close(setup);
	arena_release(&arena);
}

/* ---- Prepared statements -------------------------------------------------------------------- */

static void a_plan_that_outlived_its_table_is_made_again(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct script *script;
	struct store *store = fixture_fresh();
	enum ibid_code codes[3];
	(void)state;
	assert_true(fixture_exec("create table t (status int)"));
	assert_true(fixture_exec("insert into t values (200)"));
	assert_int_equal(
	    store->ops->make_script(store, "f.sql", "select * from t", NULL, 0, &script, &err),
	    IBID_OK);
	for (int i = 0; i < 3; i++) {
		struct tx *tx = must_claim(store, &arena, "k");
		codes[i] = store->ops->run_script(tx, &arena, script, NULL, &outcome, &err);
		store->ops->rollback(&tx);
		if (i == 0)
			assert_true(fixture_exec("alter table t add column body text"));
	}
	assert_int_equal(codes[0], IBID_OK);
	assert_int_equal(codes[1], IBID_RETRY);
	assert_int_equal(codes[2], IBID_OK);
	store->ops->free_script(store, script);
	store_close(store);
	arena_release(&arena);
}

static void statements_that_the_server_forgot_are_prepared_again(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct store *store = fixture_fresh();
	(void)state;
	submit(store, &arena, "before");
	assert_int_equal(after_lending(store, &arena, "k", "deallocate all", &err), IBID_UNAVAILABLE);
	assert_non_null(strstr(err.text, "prepared statements were changed"));
	submit(store, &arena, "k");
	store_close(store);
	arena_release(&arena);
}

static void a_statement_is_named_by_its_text_and_types(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct pg_statement statements[3] = {
	    {.sql = "select $1", .types = (const Oid[]){20}, .param_count = 1},
	    {.sql = "select $1", .types = (const Oid[]){25}, .param_count = 1},
	    {.sql = "select $1", .types = (const Oid[]){20}, .param_count = 1},
	};
	struct store *setup = fixture_fresh();
	struct store *store = fixture_store(fixture_own_url(), 2, 1500);
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(pg_statement_register(&statements[i]));
	assert_string_not_equal(statements[0].name, statements[1].name);
	assert_string_equal(statements[0].name, statements[2].name);
	assert_int_equal(statements[0].id, statements[2].id);
	/* One text in several scripts, and twice in each, on one connection. */
	for (int i = 0; i < 2; i++) {
		struct tx *tx = must_claim(store, &arena, "k");
		if (run(store, &arena, tx, "select 200 as status; select 200 as status", &outcome, &err))
			fail_msg("%s", err.text);
		store->ops->rollback(&tx);
	}
	struct tx *tx = must_claim(store, &arena, "k");
	PGconn *link = store->ops->lend(tx, true);
	PGresult *result = PQexec(link, "select count(*) > 3, "
	                                "bool_and(name ~ '^ibid_[0-9a-f]{16}$') "
	                                "from pg_prepared_statements");
	assert_string_equal(PQgetvalue(result, 0, 0), "t");
	assert_string_equal(PQgetvalue(result, 0, 1), "t");
	PQclear(result);
	store->ops->rollback(&tx);
	store_close(store);
	store_close(setup);
	arena_release(&arena);
}

static size_t lanes_of(const char *query)
{
	struct store *store = fixture_store(fixture_url("postgres", fixture_port(), query), 1, 1500);
	size_t lanes = store->ops->lanes(store);
	store_close(store);
	return lanes;
}

static void lanes_are_those_of_the_url_or_of_the_machine(void **state)
{
	(void)state;
	store_close(fixture_fresh());
	assert_int_equal(lanes_of("?lanes=1"), 1);
	assert_int_equal(lanes_of("?lanes=2&connect_timeout=5"), 2);
	assert_int_equal(lanes_of("?statements=unnamed&lanes=1"), 1);
	assert_int_equal(lanes_of(""), sysconf(_SC_NPROCESSORS_ONLN) > 2 ? 2 : 1);
}

static void parameters_of_the_url_that_can_not_be_are_refused(void **state)
{
	static const struct {
		const char *query, *said;
	} cases[] = {
	    {"?lanes=3", "the store's URL: lanes must be 1 or 2"},
	    {"?lanes=", "the store's URL: lanes must be 1 or 2"},
	    {"?lanes=2&statements=some", "the store's URL: statements must be named or unnamed"},
	    {"?lanes=1&lanes=2", "the store's URL is not a valid PostgreSQL URL"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct store *store = NULL;
		struct ibid_err err = {0};
		struct store_options options = {
		    .url = fixture_url("postgres", fixture_port(), cases[i].query), .env = env_system()};
		assert_int_equal(store_postgres_open(&options, &store, &err), IBID_INVALID);
		assert_string_equal(err.text, cases[i].said);
	}
}

static void without_named_statements_nothing_is_prepared(void **state)
{
	struct arena arena = {0};
	struct store *setup = fixture_fresh();
	struct store *store = fixture_store(
	    fixture_url("postgres", fixture_port(), "?statements=unnamed"), 1, 1500);
	(void)state;
	submit(store, &arena, "before");
	struct tx *tx = must_claim(store, &arena, "k");
	PGconn *link = store->ops->lend(tx, true);
	PGresult *result = PQexec(link, "select count(*) from pg_prepared_statements");
	assert_string_equal(PQgetvalue(result, 0, 0), "0");
	PQclear(result);
	store->ops->rollback(&tx);
	submit(store, &arena, "k");
	store_close(store);
	store_close(setup);
	arena_release(&arena);
}

/* ---- Roles ---------------------------------------------------------------------------------- */

static const char *state_of(PGconn *link, const char *sql)
{
	static char sqlstate[6];
	PGresult *result = PQexec(link, sql);
	const char *field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	snprintf(sqlstate, sizeof sqlstate, "%s", field ? field : "00000");
	PQclear(result);
	return sqlstate;
}

static void emit_and_reject_refuse_wrong_use(void **state)
{
	struct store *store = fixture_fresh();
	PGconn *link = fixture_connect(fixture_own_url());
	(void)state;
	assert_string_equal(state_of(link, "select ibid.emit('p', '1', 'PaymentCreated', '{}')"),
	                    "IB003");
	assert_string_equal(state_of(link, "select ibid.reject('no spaces', 422, 'x')"), "IB003");
	assert_string_equal(state_of(link, "select ibid.reject('A', 200, 'x')"), "IB003");
	assert_string_equal(state_of(link, "select ibid.reject('A', 422, null)"), "IB001");
	static const char *const outside[] = {
	    "select ibid.link_reference('sap', '1', 'case', 'c')",
	    "select ibid.find_reference('sap', '1')",
	    "select ibid.find_external('case', 'c')",
	    "select ibid.post('s', '[]')",
	    "select ibid.move('m', 'x', 'A')",
	};
	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
		assert_string_equal(state_of(link, outside[i]), "IB003");
	PQfinish(link);
	store_close(store);
}

static void emit_refuses_arguments_that_no_consumer_could_use(void **state)
{
	static const struct {
		const char *arguments, *why;
	} rows[] = {
	    {"null, 'p', 'PaymentCreated', '{}'", "aggregate type and id"},
	    {"'', 'p', 'PaymentCreated', '{}'", "aggregate type and id"},
	    {"'payment', null, 'PaymentCreated', '{}'", "aggregate type and id"},
	    {"'payment', '', 'PaymentCreated', '{}'", "aggregate type and id"},
	    {"repeat('x', 256), 'p', 'PaymentCreated', '{}'", "aggregate type and id"},
	    {"'payment', repeat('Ã©', 128), 'PaymentCreated', '{}'", "aggregate type and id"},
	    {"'payment', 'p', 'PaymentCreated', '{}', null, ''", "the key is"},
	    {"'payment', 'p', 'PaymentCreated', '{}', null, repeat('x', 256)", "the key is"},
	    {"'payment', 'p', 'PaymentCreated', '{}', -1", "the version is"},
	    {"'payment', 'p', 'PaymentCreated', to_jsonb(repeat('x', 1048576))", "1 MiB"},
	    {"'payment', 'p', 'Other', '{}'", "not declared"},
	    {"'payment', 'p', null, '{}'", "not declared"},
	};
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	char sql[256];
	struct store *store = fixture_fresh();
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tx *tx = must_claim(store, &arena, "k");
		snprintf(sql, sizeof sql, "select ibid.emit(%s)", rows[i].arguments);
		if (run(store, &arena, tx, sql, &outcome, &err) != IBID_FAILED ||
		    !strstr(err.text, rows[i].why))
			fail_msg("%s: %s", rows[i].arguments, err.text);
		store->ops->rollback(&tx);
	}
	struct tx *tx = must_claim(store, &arena, "k");
	if (run(store, &arena, tx,
	        "select ibid.emit('payment', repeat('x', 255), 'PaymentCreated', '{}', 0); "
	        "select ibid.emit('payment', repeat('x', 255), 'PaymentCreated', '{}', 2, repeat('y', "
	        "255)); "
	        "select 200 as status",
	        &outcome, &err))
		fail_msg("%s", err.text);
	assert_int_equal(put_and_commit(store, &arena, tx, "k", &err), IBID_OK);
	assert_int_equal(fixture_number("select sum(version) from ibid.event"), 3);
	store_close(store);
	arena_release(&arena);
}

/* Also for the owner, whom no grant stops. */
static void the_outbox_and_the_audit_trail_can_not_be_emptied(void **state) /* I3 */
{
	static const char *const refused[] = {
	    "truncate ibid.event",
	    "truncate ibid.audit",
	    "truncate ibid.event_default",
	    "truncate ibid.audit_default",
	    "truncate ibid.command, ibid.event",
	};
	struct store *store = fixture_fresh();
	PGconn *link = fixture_connect(fixture_own_url());
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (strcmp(state_of(link, refused[i]), "IB007") != 0)
			fail_msg("%s", refused[i]);
	PQfinish(link);
	store_close(store);
}

/* What a person does: all of the verbs, on an item that is open. */
static void act_on(struct store *store, struct arena *arena, const struct exception_row *item)
{
	const struct store_ops *ops = store->ops;
	struct ibid_err err = {0};
	struct outcome outcome;
	struct tx *tx = NULL;
	struct exception_assignment to = {
	    .tenant = "acme", .id = item->id, .owner = "o", .assignee = "a"};
	struct approval_row proposal = {.tenant = "acme",
	                                .subject_type = "exception",
	                                .subject_id = "e",
	                                .action = "close",
	                                .proposed_by = "ann",
	                                .proposed_token = "t",
	                                .reason = "r",
	                                .proposed_us = 1};
	struct approval_end decision = {.tenant = "acme",
	                                .decision = APPROVAL_APPROVED,
	                                .decided_by = "bob",
	                                .decided_token = "t",
	                                .decided_reason = "r",
	                                .decided_us = 2};
	struct exception_end end = {.tenant = "acme",
	                            .id = &item->id,
	                            .resolved_us = 2,
	                            .resolution = "close",
	                            .resolved_by = "bob"};
	struct action_row action = {.tenant = "acme",
	                            .at_us = 2,
	                            .actor = "bob",
	                            .token = "t",
	                            .role = "approver",
	                            .action = "approve",
	                            .subject_type = "exception",
	                            .subject_id = "e",
	                            .reason = "r"};
	assert_int_equal(ops->begin_action(store, &tx, &err), IBID_OK);
	assert_int_equal(store_assign_exception(tx, &to, &err), IBID_OK);
	assert_int_equal(store_put_approval(tx, &proposal, &err), IBID_OK);
	assert_int_equal(store_resolve_exception(tx, &end, &err), IBID_OK);
	assert_int_equal(store_decide_approval(tx, &decision, &err), IBID_OK);
	assert_int_equal(store_put_action(tx, &action, &err), IBID_OK);
	if (ops->commit(&tx, arena, &outcome, &err))
		fail_msg("%s", err.text);
}

static void the_application_role_can_work_and_can_not_rewrite_history(void **state)
{
	static const char *const denied[] = {
	    "update ibid.event set payload = '{}'",
	    "delete from ibid.event",
	    "update ibid.audit set fact = ''",
	    "delete from ibid.audit",
	    "update ibid.answer set body = ''",
	    "delete from ibid.answer",
	    "delete from ibid.command",
	    "update ibid.command set key = 'x'",
	    "delete from ibid.aggregate",
	    "delete from ibid.evidence",
	    "update ibid.exception set reason = 'x'",
	    "update ibid.exception set actions = 'x'",
	    "update ibid.action set actor = 'x'",
	    "delete from ibid.action",
	    "update ibid.approval set proposed_by = 'x'",
	    "delete from ibid.approval",
	    "delete from ibid.exception",
	    "delete from ibid.duplicate",
	    "update ibid.duplicate_seen set actor = ''",
	    "delete from ibid.duplicate_seen",
	    "update ibid.contract set text = ''",
	    "delete from ibid.external_reference",
	    "update ibid.external_reference set resource_id = 'x'",
	    "delete from ibid.journal_group",
	    "update ibid.journal_line set amount = 2",
	    "delete from ibid.machine_state",
	    "update ibid.machine_state set subject_id = 'x'",
	    "update ibid.machine_state set state = 'x'",
	    "insert into ibid.machine_state select * from ibid.machine_state",
	    "insert into ibid.machine_history select * from ibid.machine_history",
	    "insert into ibid.external_reference select * from ibid.external_reference",
	    "insert into ibid.journal_group select * from ibid.journal_group",
	    "insert into ibid.journal_line select * from ibid.journal_line",
	    "update ibid.machine_history set to_state = 'x'",
	    "update ibid.exception set reason = 'x'",
	    "delete from ibid.exception",
	    "select ibid.define_machine('m', '[[\"\",\"B\"]]')",
	    "insert into ibid.schema_version values (9, 'x')",
	    "truncate ibid.event",
	    "create table ibid.x (a int)",
	    "drop table ibid.event",
	    "alter table ibid.event disable trigger all",
	};
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	char sql[128], user[64];
	struct store *setup = fixture_fresh();
	(void)state;
	snprintf(user, sizeof user, "ibid_test_user_%d", (int)getpid());
	snprintf(sql, sizeof sql, "create role %s login in role ibid_service", user);
	assert_true(fixture_exec(sql));
	struct store *store = fixture_store(fixture_url(user, fixture_port(), ""), 2, 1500);
	int version;
	assert_int_equal(store->ops->check_schema(store, &version, &err), IBID_OK);
	assert_true(fixture_exec("select ibid.define_machine('m', '[[\"\",\"A\"],[\"A\",\"B\"]]')"));
	struct tx *tx = must_claim(store, &arena, "k");
	const char *emit = "select ibid.emit('payment', 'p', 'PaymentCreated', '{}'); "
	                   "select ibid.emit('payment', 'p', 'PaymentCreated', '{}', key => 'e'); "
	                   "select ibid.link_reference('sap', '1', 'case', 'c'); "
	                   "select ibid.find_reference('sap', '1'), ibid.find_external('case', 'c'); "
	                   "select ibid.post('s', '[{\"account\":\"a\",\"direction\":\"DEBIT\","
	                   "\"amount\":1,\"currency\":\"EUR\"},{\"account\":\"b\",\"direction\":"
	                   "\"CREDIT\",\"amount\":1,\"currency\":\"EUR\"}]'); "
	                   "select ibid.move('m', 'x', 'A'); select ibid.move('m', 'x', 'B'); "
	                   "select 200 as status";
	if (run(store, &arena, tx, emit, &outcome, &err))
		fail_msg("%s", err.text);
	struct exception_row item = {.tenant = "acme",
	                             .subject_type = "command",
	                             .subject_id = "c",
	                             .reason = "R",
	                             .owner = "payments",
	                             .actions = "",
	                             .opened_us = 1};
	for (int i = 0; i < 2; i++, item.id.bytes[0]++)
		assert_int_equal(store_put_exception(tx, &item, &err), IBID_OK);
	struct exception_end over = {.tenant = "acme",
	                             .subject_type = "command",
	                             .subject_id = "c",
	                             .resolved_us = 2,
	                             .resolution = "confirmed-executed",
	                             .resolved_by = "recovery"};
	assert_int_equal(store_resolve_exception(tx, &over, &err), IBID_OK);
	if (put_and_commit(store, &arena, tx, "k", &err))
		fail_msg("%s", err.text);
	assert_int_equal(fixture_number("select count(*) from ibid.exception where state = 'RESOLVED'"),
	                 1);
	tx = must_claim(store, &arena, "k-2");
	item.subject_id = "d";
	assert_int_equal(store_put_exception(tx, &item, &err), IBID_OK);
	if (put_and_commit(store, &arena, tx, "k-2", &err))
		fail_msg("%s", err.text);
	act_on(store, &arena, &item);
	struct key_conflict_row evidence = {.tenant = "acme", .client = "", .actor = "", .last_us = 1};
	assert_int_equal(store_put_evidence(store, &evidence, &err), IBID_OK);
	assert_int_equal(store_put_evidence(store, &evidence, &err), IBID_OK);
	struct duplicate_row again = {.tenant = "acme", .first_us = 1, .last_us = 1, .count = 1};
	struct duplicate_seen_row seen = {
	    .tenant = "acme", .at_us = 1, .client = "", .actor = "", .decision = "executed"};
	for (int i = 0; i < 2; i++)
		if (store->ops->put_duplicates(store, &again, 1, &seen, 1, &err))
			fail_msg("%s", err.text);
	struct contract_row contract = {.kind = "command", .name = "pay", .version = 1, .text = "x"};
	assert_int_equal(store_put_contract(store, &contract, &err), IBID_OK);
	PGconn *link = fixture_connect(fixture_url(user, fixture_port(), ""));
	for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
		if (strcmp(state_of(link, denied[i]), "42501") != 0)
			fail_msg("not denied: %s", denied[i]);
	PQfinish(link);
	store_close(store);
	store_close(setup);
	fixture_database(); /* so that the role owns nothing */
	snprintf(sql, sizeof sql, "drop role %s", user);
	assert_true(fixture_exec(sql));
	arena_release(&arena);
}

static void a_failed_row_is_replaced_by_the_application_role(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct claim got;
	char sql[128], user[64];
	struct store *setup = fixture_fresh();
	(void)state;
	snprintf(user, sizeof user, "ibid_test_user_%d", (int)getpid());
	snprintf(sql, sizeof sql, "create role %s login in role ibid_service", user);
	assert_true(fixture_exec(sql));
	struct store *store = fixture_store(fixture_url(user, fixture_port(), ""), 2, 1500);
	struct tx *tx = must_claim(store, &arena, "k");
	struct command_row failed = completed(tx, "k");
	failed.state = COMMAND_FAILED;
	failed.audit_id = (struct uuid){0};
	assert_int_equal(store->ops->put_command(tx, &failed, NULL, &err), IBID_OK);
	assert_int_equal(store->ops->commit(&tx, &arena, &outcome, &err), IBID_OK);
	assert_int_equal(claim(store, &arena, "k", &got, &err), IBID_OK);
	assert_int_equal(got.kind, CLAIM_FOUND);
	struct command_row row = completed(got.tx, "k");
	assert_memory_equal(&row.id, &failed.id, sizeof row.id);
	row.attempts = 2;
	row.body = "{}";
	row.body_size = 2;
	assert_int_equal(store->ops->put_command(got.tx, &row, &got.row, &err), IBID_OK);
	if (store->ops->commit(&got.tx, &arena, &outcome, &err))
		fail_msg("%s", err.text);
	assert_int_equal(claim(store, &arena, "k", &got, &err), IBID_OK);
	assert_int_equal(got.row.state, COMMAND_COMPLETED);
	assert_string_equal(got.row.body, "{}");
	store_close(store);
	store_close(setup);
	fixture_database();
	snprintf(sql, sizeof sql, "drop role %s", user);
	assert_true(fixture_exec(sql));
	arena_release(&arena);
}

/* ---- Processes ------------------------------------------------------------------------------ */

static int migrate_in_child(void)
{
	struct ibid_err err;
	int from = -1, to = -1;
	struct store *store = fixture_store(fixture_own_url(), 1, 1500);
	enum ibid_code code = store->ops->migrate(store, &from, &to, &err);
	if (code)
		fprintf(stderr, "migrate: %s\n", err.text);
	store_close(store);
	return code ? 99 : from;
}

static void processes_that_migrate_at_once_do_it_once(void **state)
{
	enum { PROCESSES = 6 };
	pid_t children[PROCESSES];
	int first = 0;
	(void)state;
	fixture_database();
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0)
			_exit(migrate_in_child());
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_true(WIFEXITED(status));
		assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == STORE_SCHEMA);
		first += WEXITSTATUS(status) == 0;
	}
	assert_int_equal(first, 1);
	assert_int_equal(fixture_number("select count(*) from ibid.schema_version"), STORE_SCHEMA);
}

/* ---- PgBouncer ------------------------------------------------------------------------------ */

struct bouncer {
	char dir[64], ini[96];
	struct proxy *keeper; /* of its port: nobody can take it before the bouncer does */
	int port;
	pid_t pid;
};

static void bouncer_write(struct bouncer *bouncer, int port)
{
	FILE *file = fopen(bouncer->ini, "w");
	assert_non_null(file);
	bouncer->port = port;
	fprintf(file,
	        "[databases]\n* = host=127.0.0.1 port=%d user=postgres\n[pgbouncer]\n"
	        "listen_addr = 127.0.0.1\nlisten_port = %d\nauth_type = any\nunix_socket_dir =\n"
	        "pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\n"
	        "logfile = %s/log\n",
	        fixture_port(), port, bouncer->dir);
	fclose(file);
}

/* It refuses to be root. */
static void become_postgres(void)
{
	struct passwd *user = getuid() == 0 ? getpwnam("postgres") : NULL;
	if (user && (setgid(user->pw_gid) || setuid(user->pw_uid)))
		_exit(126);
}

static bool bouncer_start(struct bouncer *bouncer)
{
	struct passwd *user = getpwnam("postgres");
	scratch_dir("ibid-bouncer", bouncer->dir, sizeof bouncer->dir);
	if (user && getuid() == 0)
		assert_int_equal(chown(bouncer->dir, user->pw_uid, user->pw_gid), 0);
	snprintf(bouncer->ini, sizeof bouncer->ini, "%s/ini", bouncer->dir);
	bouncer->keeper = proxy_new(1);
	proxy_stop(bouncer->keeper);
	int port = proxy_port(bouncer->keeper);
	bouncer_write(bouncer, port);
	bouncer->pid = fork();
	if (bouncer->pid == 0) {
		become_postgres();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("pgbouncer", "pgbouncer", "-q", bouncer->ini, (char *)NULL);
		execl("/usr/sbin/pgbouncer", "pgbouncer", "-q", bouncer->ini, (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 250 && waitpid(bouncer->pid, NULL, WNOHANG) != bouncer->pid; i++) {
		if (PQping(fixture_url("postgres", port, "")) == PQPING_OK)
			return true;
		usleep(20000);
	}
	proxy_free(bouncer->keeper);
	return false;
}

static void bouncer_stop(struct bouncer *bouncer)
{
	char log[96];
	kill(bouncer->pid, SIGKILL);
	waitpid(bouncer->pid, NULL, 0);
	proxy_free(bouncer->keeper);
	snprintf(log, sizeof log, "%s/log", bouncer->dir);
	unlink(log);
	unlink(bouncer->ini);
	rmdir(bouncer->dir);
}

enum { BOUNCED_THREADS = 8, BOUNCED_KEYS = 40 };

struct bounced {
	struct store *store;
	unsigned executed, other, failed;
};

/* All threads go through the same keys, so each key is claimed by eight at about the same time. */
static void *submit_keys(void *user)
{
	struct bounced *b = user;
	for (int i = 0; i < BOUNCED_KEYS; i++) {
		struct arena arena = {0};
		struct ibid_err err;
		struct claim got = {0};
		char key[16];
		snprintf(key, sizeof key, "k-%d", i);
		enum ibid_code code = claim(b->store, &arena, key, &got, &err);
		bool free_key = code == IBID_OK && got.kind == CLAIM_FREE;
		if (free_key)
			code = put_and_commit(b->store, &arena, got.tx, key, &err);
		if (code) {
			fprintf(stderr, "%s: %s\n", key, err.text);
			b->failed++;
		} else if (free_key) {
			b->executed++;
		} else {
			b->other++;
		}
		arena_release(&arena);
	}
	return NULL;
}

static void many_claims_share_two_connections_of_a_transaction_pool(void **state)
{
	struct bouncer bouncer;
	struct store *setup = fixture_fresh();
	pthread_t threads[BOUNCED_THREADS];
	struct bounced bounced[BOUNCED_THREADS] = {0};
	unsigned executed = 0, failed = 0;
	(void)state;
	if (!bouncer_start(&bouncer)) {
		store_close(setup);
		skip();
	}
	struct store *store = fixture_store(
	    fixture_url("postgres", bouncer.port, "?statements=unnamed"), 8, 5000);
	for (int i = 0; i < BOUNCED_THREADS; i++) {
		bounced[i].store = store;
		assert_int_equal(pthread_create(&threads[i], NULL, submit_keys, &bounced[i]), 0);
	}
	for (int i = 0; i < BOUNCED_THREADS; i++) {
		pthread_join(threads[i], NULL);
		executed += bounced[i].executed;
		failed += bounced[i].failed;
	}
	assert_int_equal(failed, 0);
	assert_int_equal(executed, BOUNCED_KEYS);
	assert_int_equal(fixture_number("select count(*) from ibid.command"), BOUNCED_KEYS);
	store_close(store);
	bouncer_stop(&bouncer);
	store_close(setup);
}

static void named_statements_behind_a_transaction_pool_are_explained(void **state)
{
	struct bouncer bouncer;
	struct arena arena = {0};
	struct ibid_err err;
	struct claim got;
	struct store *setup = fixture_fresh();
	(void)state;
	if (!bouncer_start(&bouncer)) {
		store_close(setup);
		skip();
	}
	const char *url = fixture_url("postgres", bouncer.port, "");
	struct store *one = fixture_store(url, 1, 1500), *two = fixture_store(url, 1, 1500);
	submit(one, &arena, "k");
	/* It gets the server on which the other one has prepared its statements. */
	assert_int_equal(claim(two, &arena, "l", &got, &err), IBID_UNAVAILABLE);
	assert_string_equal(err.text,
	                    "prepared statements were changed under this connection: behind a "
	                    "transaction-pooling proxy add statements=unnamed to the store's URL");
	submit(one, &arena, "m");
	store_close(one);
	store_close(two);
	bouncer_stop(&bouncer);
	store_close(setup);
	arena_release(&arena);
}

/* ---- Indexes -------------------------------------------------------------------------------- */

static struct index_row index_of(struct store *store, struct arena *arena, const char *name)
{
	struct index_row row = {0};
	struct ibid_err err;
	if (store->ops->describe_index(store, arena, name, &row, &err))
		fail_msg("%s: %s", name, err.text);
	return row;
}

/* A08 */
static void what_a_failed_build_left_behind_is_no_valid_index(void **state)
{
	struct arena arena = {0};
	struct store *store = fixture_fresh();
	(void)state;
	assert_true(fixture_exec("create table paid as select 1 as id union all select 1"));
	assert_false(fixture_exec("create unique index concurrently paid_id on paid (id)"));
	struct index_row row = index_of(store, &arena, "paid_id");
	assert_true(row.unique && !row.valid);
	store_close(store);
	arena_release(&arena);
}

static void constraints_and_expressions_are_described_and_the_search_path_decides(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct index_row row;
	struct store *store = fixture_fresh();
	(void)state;
	assert_true(fixture_exec("create table paid (t text, r text, d daterange,\n"
	                         "constraint paid_once unique (t, r),\n"
	                         "constraint paid_apart exclude using gist (d with &&))"));
	assert_true(fixture_exec("create unique index paid_lower on paid (t, lower(r))"));
	assert_true(fixture_exec("create schema a create table paid (t text)\n"
	                         "create index paid_once on paid (t)"));
	assert_true(fixture_exec("create schema b create table due (t text)\n"
	                         "create unique index due_once on due (t)"));
	row = index_of(store, &arena, "paid_once");
	assert_true(row.unique && row.valid && !row.partial);
	assert_string_equal(row.columns, "t, r");
	assert_true(index_of(store, &arena, "paid_apart").unique);
	assert_string_equal(index_of(store, &arena, "paid_lower").columns, "t, lower(r)");
	assert_string_equal(index_of(store, &arena, "due_once").table, "due");
	assert_int_equal(store->ops->describe_index(store, &arena, "command_pkey", &row, &err),
	                 IBID_NOT_FOUND); /* ours is not the user's */
	store_close(store);
	arena_release(&arena);
}

/* ---- Doctor --------------------------------------------------------------------------------- */

struct findings {
	unsigned refused, warned;
	char refusal[128], warning[128];
};

static void note(void *user, enum finding_level level, const char *what, const char *advice)
{
	struct findings *findings = user;
	findings->warned += level == FINDING_WARN;
	findings->refused += level == FINDING_REFUSE;
	assert_true(level == FINDING_OK || *advice);
	if (level == FINDING_REFUSE)
		snprintf(findings->refusal, sizeof findings->refusal, "%s", what);
	if (level == FINDING_WARN)
		snprintf(findings->warning, sizeof findings->warning, "%s", what);
}

static struct findings examine_store(struct store *store)
{
	struct findings findings = {0};
	struct ibid_err err;
	if (store->ops->doctor(store, note, &findings, &err))
		fail_msg("%s", err.text);
	store_close(store);
	return findings;
}

static struct findings examine(unsigned connections)
{
	return examine_store(fixture_store(fixture_own_url(), connections, 1500));
}

static void doctor_refuses_what_would_lose_commits(void **state)
{
	char sql[128];
	(void)state;
	store_close(fixture_fresh());
	struct findings findings = examine(8);
	assert_int_equal(findings.refused + findings.warned, 0);
	assert_int_equal(examine(100000).warned, 1);
	PGconn *link = fixture_connect(fixture_own_url());
	snprintf(sql, sizeof sql, "alter database %s set synchronous_commit = off", PQdb(link));
	PQfinish(link);
	assert_true(fixture_exec(sql));
	assert_string_equal(examine(8).refusal, "synchronous_commit=off");
	assert_true(fixture_exec("drop index ibid.command_tenant_id_key"));
	assert_int_equal(examine(8).refused, 2);
	assert_true(fixture_exec("drop schema ibid cascade"));
	assert_non_null(strstr(examine(8).refusal, "no schema"));
}

static void doctor_sees_what_a_role_was_given(void **state)
{
	(void)state;
	store_close(fixture_fresh());
	assert_true(fixture_exec("drop role if exists hasty"));
	assert_true(fixture_exec("create role hasty superuser login"));
	assert_true(fixture_exec("alter role hasty set synchronous_commit = off"));
	assert_int_equal(examine(8).refused, 0);
	struct findings findings = examine_store(
	    fixture_store(fixture_url("hasty", fixture_port(), ""), 8, 1500));
	assert_string_equal(findings.refusal, "synchronous_commit=off");
	assert_true(fixture_exec("drop role hasty"));
}

struct ahead {
	struct env env; /* the machine's, but for the wall clock */
	int64_t by_us;
};
static int64_t wall_ahead(struct env *env)
{
	return env_wall_us(env_system()) + ((struct ahead *)env)->by_us;
}

static void doctor_warns_of_clocks_that_differ(void **state)
{
	static const struct {
		int64_t ahead_us;
		const char *warning;
	} cases[] = {{-5000000, "s ahead"}, {5000000, "s behind"}, {0, ""}};
	(void)state;
	store_close(fixture_fresh());
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ahead env = {.env = *env_system(), .by_us = cases[i].ahead_us};
		struct store *store = NULL;
		struct ibid_err err;
		env.env.wall_us = wall_ahead;
		struct store_options options = {
		    .url = fixture_own_url(), .connections = 2, .busy_ms = 1500, .env = &env.env};
		assert_int_equal(store_postgres_open(&options, &store, &err), IBID_OK);
		struct findings findings = examine_store(store);
		assert_int_equal(findings.refused, 0);
		assert_int_equal(findings.warned, cases[i].ahead_us != 0);
		assert_non_null(strstr(findings.warning, cases[i].warning));
	}
}

static void doctor_warns_of_transaction_ids_that_are_not_frozen(void **state)
{
	static const char burn[] = "do $$ begin for i in 1..115000 loop\n"
	                           "begin perform pg_logical_emit_message(true, '', '');\n"
	                           "exception when others then raise; end; end loop; end $$";
	PGconn *ids = fixture_own_ids();
	(void)state;
	store_close(fixture_fresh());
	/* The lowest limit that the server takes. */
	assert_true(fixture_exec("alter table ibid.command set (autovacuum_freeze_max_age = 100000)"));
	assert_int_equal(examine(8).warned, 0);
	/* While this one looks, no vacuum can freeze what it sees. */
	PGconn *link = fixture_connect(fixture_own_url());
	PQclear(PQexec(link, "begin isolation level repeatable read; select from ibid.command"));
	assert_true(fixture_exec(burn));
	struct findings findings = examine(8);
	assert_int_equal(findings.warned, 1);
	assert_non_null(strstr(findings.warning, "table ibid.command holds transaction ids"));
	PQclear(PQexec(link, "rollback")); /* PQfinish does not wait for the server */
	PQfinish(link);
	assert_true(fixture_exec("vacuum (freeze) ibid.command"));
	assert_int_equal(examine(8).warned, 0);
	PQfinish(ids);
}

/* Those of partitions come and go with their table's. Nothing can be asked without
 * schema_version. */
static void doctor_knows_every_index_of_the_schema(void **state)
{
	static const char indexes[] = "from pg_class as c where relkind in ('i', 'I')\n"
	                              "and not relispartition and relname <> 'schema_version_pkey'\n"
	                              "and relnamespace = 'ibid'::regnamespace";
	char sql[512];
	(void)state;
	store_close(fixture_fresh());
	snprintf(sql, sizeof sql, "select count(*) %s", indexes);
	int64_t count = fixture_number(sql);
	snprintf(sql, sizeof sql,
	         "update pg_index set indisvalid = false where indexrelid in (select oid %s)", indexes);
	assert_true(fixture_exec(sql));
	assert_int_equal(examine(8).refused, count);
}

/* A restore may leave triggers switched off. */
static void doctor_knows_every_trigger_and_every_policy_of_the_schema(void **state)
{
	static const char triggers[] = "from pg_trigger as t join pg_class as c on c.oid = t.tgrelid\n"
	                               "where not t.tgisinternal and c.relnamespace = "
	                               "'ibid'::regnamespace";
	char sql[512];
	(void)state;
	store_close(fixture_fresh());
	snprintf(sql, sizeof sql, "select count(*) %s", triggers);
	int64_t count = fixture_number(sql);
	snprintf(sql, sizeof sql,
	         "update pg_trigger set tgenabled = 'D' where oid in (select t.oid %s)", triggers);
	assert_true(fixture_exec(sql));
	assert_int_equal(examine(8).refused, count);
	assert_true(fixture_exec("update pg_trigger set tgenabled = 'O' where tgenabled = 'D'"));
	assert_true(fixture_exec("alter table ibid.command disable row level security"));
	struct findings findings = examine(8);
	assert_int_equal(findings.refused, 1);
	assert_string_equal(findings.refusal,
	                    "row security of ibid.command is missing or switched off");
	assert_true(fixture_exec("drop trigger command_is_finished on ibid.open_command"));
	assert_string_equal(examine(8).refusal,
	                    "trigger command_is_finished of ibid.open_command is missing or switched "
	                    "off");
}

static void doctor_warns_of_named_statements_behind_a_pool(void **state)
{
	struct bouncer bouncer;
	(void)state;
	store_close(fixture_fresh());
	if (!bouncer_start(&bouncer))
		skip();
	struct findings named = examine_store(
	    fixture_store(fixture_url("postgres", bouncer.port, ""), 1, 1500));
	struct findings unnamed = examine_store(
	    fixture_store(fixture_url("postgres", bouncer.port, "?statements=unnamed"), 1, 1500));
	bouncer_stop(&bouncer);
	assert_string_equal(named.warning, "a pooling proxy stands before the server");
	assert_int_equal(unnamed.warned + unnamed.refused, 0);
}

static void a_database_that_is_not_in_utf8_is_refused(void **state)
{
	struct ibid_err err;
	struct findings findings = {0};
	char sql[160], url[256];
	int from, to;
	(void)state;
	fixture_database();
	snprintf(sql, sizeof sql,
	         "create database ibid_test_latin1_%d encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' "
	         "template template0",
	         (int)getpid());
	assert_true(fixture_exec(sql));
	PGconn *link = fixture_connect(fixture_own_url());
	snprintf(url, sizeof url, "postgres://postgres@%s:%d/ibid_test_latin1_%d", PQhost(link),
	         fixture_port(), (int)getpid());
	PQfinish(link);
	struct store *store = fixture_store(url, 1, 1500);
	assert_int_equal(store->ops->migrate(store, &from, &to, &err), IBID_SCHEMA);
	assert_string_equal(err.text, "the database has the encoding LATIN1; ibid needs UTF8");
	assert_int_equal(store->ops->check_schema(store, &to, &err), IBID_SCHEMA);
	assert_string_equal(err.text, "the database has the encoding LATIN1; ibid needs UTF8");
	assert_int_equal(store->ops->doctor(store, note, &findings, &err), IBID_OK);
	assert_int_equal(findings.refused, 1);
	assert_string_equal(findings.refusal, "encoding LATIN1");
	store_close(store);
	snprintf(sql, sizeof sql, "drop database ibid_test_latin1_%d with (force)", (int)getpid());
	assert_true(fixture_exec(sql));
}

/* ---- Errors --------------------------------------------------------------------------------- */

static void an_error_points_at_its_line_and_quotes_no_value(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct store *store = fixture_fresh();
	(void)state;
	struct tx *tx = must_claim(store, &arena, "k");
	assert_int_equal(run(store, &arena, tx, "select 1;\n\nselect 'é',\n  nothing", &outcome, &err),
	                 IBID_FAILED);
	assert_string_equal(err.text, "f.sql:4: column \"nothing\" does not exist");
	assert_string_equal(outcome.text, err.text);
	store->ops->rollback(&tx);
	tx = must_claim(store, &arena, "k");
	assert_int_equal(run(store, &arena, tx, "select cast('s3cret' || 'x' as int)", &outcome, &err),
	                 IBID_FAILED);
	assert_null(strstr(err.text, "s3cret"));
	store->ops->rollback(&tx);
	store_close(store);
	arena_release(&arena);
}

static void an_exclusion_violation_is_a_duplicate_of_its_constraint(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct outcome outcome;
	struct store *store = fixture_fresh();
	(void)state;
	assert_true(fixture_exec("create table booking (during int4range, "
	                         "constraint no_overlap exclude using gist (during with &&))"));
	assert_true(fixture_exec("insert into booking values ('[1,5)')"));
	struct tx *tx = must_claim(store, &arena, "k");
	assert_int_equal(run(store, &arena, tx, "insert into booking values ('[4,9)')", &outcome, &err),
	                 IBID_DUPLICATE);
	assert_string_equal(outcome.unique, "no_overlap");
	store->ops->rollback(&tx);
	store_close(store);
	arena_release(&arena);
}

static void a_server_that_refuses_to_write_is_told_with_its_causes(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct store *setup = fixture_fresh();
	struct store *store = fixture_store(
	    fixture_url("postgres", fixture_port(), "?options=-cdefault_transaction_read_only%3Don"), 1,
	    1500);
	(void)state;
	struct tx *tx = must_claim(store, &arena, "k");
	assert_int_equal(put_and_commit(store, &arena, tx, "k", &err), IBID_UNAVAILABLE);
	assert_non_null(strstr(err.text, "the server refuses to write: a standby, or "
	                                 "default_transaction_read_only is on"));
	store_close(store);
	store_close(setup);
	arena_release(&arena);
}

static void a_key_too_long_for_the_index_is_a_limit(void **state)
{
	struct arena arena = {0};
	struct ibid_err err;
	struct store *store = fixture_fresh();
	char key[9001];
	(void)state;
	env_random(env_system(), key, sizeof key); /* does not compress */
	for (size_t i = 0; i < sizeof key - 1; i++)
		key[i] = (char)('!' + (unsigned char)key[i] % 90);
	key[sizeof key - 1] = '\0';
	struct tx *tx = must_claim(store, &arena, key);
	assert_int_equal(put_and_commit(store, &arena, tx, key, &err), IBID_LIMIT);
	assert_int_equal(claim(store, &arena, "not utf-8 \xff", &(struct claim){0}, &err),
	                 IBID_INVALID);
	store_close(store);
	arena_release(&arena);
}

static void a_schema_file_that_commits_is_noticed_and_not_noted(void **state)
{
	struct ibid_err err;
	enum schema_state applied;
	struct store *store = fixture_fresh();
	(void)state;
	assert_int_equal(store->ops->apply_schema(
	                     store,
	                     &(struct schema_file){.name = "s.sql",
	                                           .text = "create table a (x int); commit; begin;",
	                                           .now_us = 1},
	                     &applied, &err),
	                 IBID_CONTRACT);
	assert_non_null(strstr(err.text, "must not begin or end"));
	assert_int_equal(fixture_number("select count(*) from ibid.schema_file"), 0);
	assert_int_equal(store->ops->apply_schema(
	                     store,
	                     &(struct schema_file){.name = "t.sql",
	                                           .text = "create table b (x int);\n\ncreate tabel c;",
	                                           .now_us = 1},
	                     &applied, &err),
	                 IBID_CONTRACT);
	assert_string_equal(err.text, "t.sql:3: syntax error at or near \"tabel\"");
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_sql_file_prepares_with_the_parameters_that_we_send),
	    cmocka_unit_test(look_ups_are_planned_over_their_index_also_on_empty_tables),
	    cmocka_unit_test(the_lock_key_is_the_same_in_c_and_in_sql),
	    cmocka_unit_test(an_error_of_opening_says_what_is_wrong_and_no_password),
	    cmocka_unit_test(a_stale_connection_is_replaced_without_the_caller_noticing),
	    cmocka_unit_test(a_connection_lost_before_the_commit_is_unavailable_and_nothing_is_done),
	    cmocka_unit_test(a_commit_on_a_dead_connection_is_unknown_until_it_is_resolved),
	    cmocka_unit_test(a_commit_whose_answer_is_lost_is_unknown_and_then_found),
	    cmocka_unit_test(a_client_cut_off_at_the_commit_waits_for_it_and_finds_it),
	    cmocka_unit_test(a_commit_that_never_arrived_is_unknown_and_then_found_not_done),
	    cmocka_unit_test(resolve_waits_for_the_twin_and_gives_up_in_time),
	    cmocka_unit_test(resolve_keeps_trying_to_connect_until_its_time_is_over),
	    cmocka_unit_test(a_claim_and_a_commit_are_one_round_trip_each),
	    cmocka_unit_test(a_handler_that_ends_the_transaction_is_noticed),
	    cmocka_unit_test(a_transaction_tells_whether_its_handler_ended_it),
	    cmocka_unit_test(a_row_that_is_held_is_waited_for_and_then_its_commit_is_seen),
	    cmocka_unit_test(a_row_that_is_held_too_long_is_busy),
	    cmocka_unit_test(a_handler_that_leaves_the_transaction_failed_has_failed),
	    cmocka_unit_test(a_handler_that_leaves_results_unread_is_misuse),
	    cmocka_unit_test(statements_of_a_lent_connection_commit_with_the_command),
	    cmocka_unit_test(a_lent_connection_that_was_lost_has_committed_nothing),
	    cmocka_unit_test(what_a_script_does_to_its_session_does_not_reach_the_next_command),
	    cmocka_unit_test(a_commit_is_durable_whatever_the_default_or_the_handler_says),
	    cmocka_unit_test(emit_and_reject_refuse_wrong_use),
	    cmocka_unit_test(emit_refuses_arguments_that_no_consumer_could_use),
	    cmocka_unit_test(the_outbox_and_the_audit_trail_can_not_be_emptied),
	    cmocka_unit_test(one_of_two_in_a_deadlock_is_told_to_retry),
	    cmocka_unit_test(a_serialization_failure_is_told_to_retry),
	    cmocka_unit_test(a_locked_business_row_is_busy_and_not_an_endless_wait),
	    cmocka_unit_test(twins_of_a_completed_command_all_get_its_row),
	    cmocka_unit_test(a_full_pool_is_busy_and_recovers),
	    cmocka_unit_test(a_plan_that_outlived_its_table_is_made_again),
	    cmocka_unit_test(statements_that_the_server_forgot_are_prepared_again),
	    cmocka_unit_test(a_statement_is_named_by_its_text_and_types),
	    cmocka_unit_test(lanes_are_those_of_the_url_or_of_the_machine),
	    cmocka_unit_test(parameters_of_the_url_that_can_not_be_are_refused),
	    cmocka_unit_test(without_named_statements_nothing_is_prepared),
	    cmocka_unit_test(the_application_role_can_work_and_can_not_rewrite_history),
	    cmocka_unit_test(a_failed_row_is_replaced_by_the_application_role),
	    cmocka_unit_test(processes_that_migrate_at_once_do_it_once),
	    cmocka_unit_test(many_claims_share_two_connections_of_a_transaction_pool),
	    cmocka_unit_test(named_statements_behind_a_transaction_pool_are_explained),
	    cmocka_unit_test(what_a_failed_build_left_behind_is_no_valid_index),
	    cmocka_unit_test(constraints_and_expressions_are_described_and_the_search_path_decides),
	    cmocka_unit_test(doctor_refuses_what_would_lose_commits),
	    cmocka_unit_test(doctor_sees_what_a_role_was_given),
	    cmocka_unit_test(doctor_warns_of_clocks_that_differ),
	    cmocka_unit_test(doctor_warns_of_transaction_ids_that_are_not_frozen),
	    cmocka_unit_test(doctor_knows_every_index_of_the_schema),
	    cmocka_unit_test(doctor_knows_every_trigger_and_every_policy_of_the_schema),
	    cmocka_unit_test(doctor_warns_of_named_statements_behind_a_pool),
	    cmocka_unit_test(a_database_that_is_not_in_utf8_is_refused),
	    cmocka_unit_test(an_error_points_at_its_line_and_quotes_no_value),
	    cmocka_unit_test(an_exclusion_violation_is_a_duplicate_of_its_constraint),
	    cmocka_unit_test(a_server_that_refuses_to_write_is_told_with_its_causes),
	    cmocka_unit_test(a_key_too_long_for_the_index_is_a_limit),
	    cmocka_unit_test(a_schema_file_that_commits_is_noticed_and_not_noted),
	};
	fixture_start();
	int failed = cmocka_run_group_tests_name("postgres engine", tests, NULL, NULL);
	fixture_stop();
	return failed;
}
