/* SPDX-License-Identifier: Apache-2.0 */
/* test_staged.c -- work that is done between two transactions, and workers that go silent in it. */
#include "support/bed.h"
#include "support/fault.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/staged"

static const char payload[] = "{\"amount\":12.50}";

static struct bed bed;
static struct ibid *ibid;

static int set_up(void **state)
{
	(void)state;
	bed_open(&bed, FIXTURE);
	ibid = bed_ibid(&bed, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ibid_close(ibid);
	bed_close(&bed);
	return 0;
}

/* ---- Words ---------------------------------------------------------------------------------- */

static enum ibid_code try_stage(struct ibid *on, const char *operation, const char *key,
                                const char *with, struct ibid_staged **staged,
                                struct ibid_result **result, struct ibid_err *err)
{
	*err = (struct ibid_err){0};
	return ibid_stage(on,
	                  IBID_COMMAND(.tenant = "t", .client = "c", .actor = "a",
	                               .operation = operation, .key = key, .payload = with),
	                  staged, result, err);
}

static struct ibid_staged *stage(struct ibid *on, const char *operation, const char *key)
{
	struct ibid_staged *staged = NULL;
	struct ibid_result *result = NULL;
	struct ibid_err err;
	if (try_stage(on, operation, key, payload, &staged, &result, &err))
		fail_msg("stage %s: %s", key, err.text);
	assert_non_null(staged);
	assert_null(result);
	return staged;
}

/* What a duplicate hears, "staged" when it may work on it itself. */
static void expect_stage(const char *operation, const char *key, const char *with,
                         const char *expected)
{
	struct ibid_staged *staged = NULL;
	struct ibid_result *result = NULL;
	struct ibid_err err;
	if (try_stage(ibid, operation, key, with, &staged, &result, &err))
		fail_msg("stage %s: %s", key, err.text);
	assert_string_equal(staged ? "staged" : bed_say(result), expected);
	ibid_staged_free(staged);
	ibid_result_free(result);
}

static const char *id_of(const struct ibid_staged *staged)
{
	return ibid_work_command_id(ibid_staged_work(staged));
}

static void add_charge(const char *id, const char *charge)
{
	bed_exec(&bed, "insert into charge (command_id, state) values ('%s', '%s')", id, charge);
}

/* The finishing transaction: a row of its own, an event, an answer. */
static enum ibid_code conclude(struct ibid_work *work, void *user)
{
	const char *values[1] = {ibid_work_command_id(work)};
	sqlite3 *db = ibid_work_sqlite(work);
	PGconn *conn = ibid_work_postgres(work);
	int *fail_times = user;
	if (db) {
		sqlite3_stmt *statement;
		assert_int_equal(
		    sqlite3_prepare_v2(db, "insert into charge values (?, 'done')", -1, &statement, NULL),
		    SQLITE_OK);
		sqlite3_bind_text(statement, 1, values[0], -1, SQLITE_TRANSIENT);
		assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
		sqlite3_finalize(statement);
	} else {
		PGresult *result = PQexecParams(conn, "insert into charge values ($1, 'done')", 1, NULL,
		                                values, NULL, NULL, 0);
		assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
		PQclear(result);
	}
	if (fail_times && (*fail_times)-- > 0)
		return ibid_fail(work, "the test's handler fails");
	assert_int_equal(
	    ibid_emit(work, IBID_EVENT(.aggregate_type = "charge", .aggregate_id = values[0],
	                               .type = "Charged", .payload = "{}")),
	    IBID_OK);
	ibid_resource(work, "charge", values[0]);
	return ibid_answer(work, 201, "{\"charged\":12.5}");
}

static enum ibid_code conclude_plainly(struct ibid_work *work, void *user)
{
	(void)user;
	return ibid_answer(work, 201, "{}");
}

static enum ibid_code decline(struct ibid_work *work, void *user)
{
	(void)user;
	return ibid_reject(work, "DECLINED", 409, "the card was declined");
}

static enum ibid_code skip_a_version(struct ibid_work *work, void *user)
{
	(void)user;
	assert_int_equal(ibid_emit(work, IBID_EVENT(.aggregate_type = "charge", .aggregate_id = "1",
	                                            .type = "Charged", .payload = "{}", .version = 7)),
	                 IBID_OK);
	return ibid_answer(work, 201, NULL);
}

static void expect_finish(struct ibid_staged *staged, ibid_handler *handler, const char *expected)
{
	struct ibid_result *result = NULL;
	struct ibid_err err;
	if (ibid_staged_finish(staged, handler, NULL, &result, &err))
		fail_msg("finish: %s", err.text);
	assert_string_equal(bed_say(result), expected);
	assert_string_equal(ibid_result_command_id(result), id_of(staged));
	ibid_result_free(result);
}

static void assert_fenced(struct ibid_staged *staged)
{
	struct ibid_result *result = NULL;
	struct ibid_err err;
	assert_int_equal(ibid_staged_finish(staged, conclude, NULL, &result, &err), IBID_FENCED);
	assert_int_equal(ibid_staged_fail(staged, true, "x", &result, &err), IBID_FENCED);
	assert_int_equal(ibid_staged_unknown(staged, "x", &result, &err), IBID_FENCED);
	assert_int_equal(ibid_staged_renew(staged, &err), IBID_FENCED);
	assert_null(result);
}

/* Nobody waits for a lease to end: its end is moved into the past. */
static void end_leases(void)
{
	if (bed.kind == BED_SQLITE)
		bed_exec(&bed, "update ibid.command set lease_until_us = 1 where lease_until_us > 0");
	else
		bed_exec(&bed,
		         "update ibid.command set lease_until = 'epoch' where lease_until is not null");
}

static void lock_leases(void)
{
	bed_exec(&bed, "update ibid.command set %s = null",
	         bed.kind == BED_SQLITE ? "lease_until_us" : "lease_until");
}

struct told {
	size_t ended, left;
	char said[64], text[256], id[64];
};

static void hear(void *user, const char *tenant, const char *operation, const char *command_id,
                 const struct ibid_result *result, const char *text)
{
	struct told *told = user;
	assert_string_equal(tenant, "t");
	assert_non_null(operation);
	snprintf(told->id, sizeof told->id, "%s", command_id);
	snprintf(told->text, sizeof told->text, "%s", text);
	if (result)
		snprintf(told->said, sizeof told->said, "%s", bed_say(result));
	told->ended += result != NULL;
	told->left += result == NULL;
}

static struct told recover(struct ibid *on, bool dry_run)
{
	struct told told = {0};
	struct ibid_err err = {0};
	size_t count = 0;
	if (ibid_recover(on, IBID_RECOVERY(.dry_run = dry_run, .tell = hear, .user = &told), &count,
	                 &err))
		fail_msg("recover: %s", err.text);
	assert_int_equal(count, told.ended);
	return told;
}

static int64_t rows(const char *table)
{
	return bed_number(&bed, "select count(*) from %s", table);
}

static void assert_rows(int64_t charges, int64_t events, int64_t audits)
{
	assert_int_equal(rows("charge"), charges);
	assert_int_equal(rows("ibid.event"), events);
	assert_int_equal(rows("ibid.audit"), audits);
}

static int64_t in_state(const char *state)
{
	return bed_number(&bed, "select count(*) from ibid.command where state = '%s'", state);
}

/* ---- Staging and ending --------------------------------------------------------------------- */

static void a_staged_command_is_finished_whole_in_a_second_transaction(void **state) /* B06 */
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	const struct ibid_work *work = ibid_staged_work(staged);
	assert_int_equal(in_state("IN_PROGRESS"), 1);
	assert_rows(0, 0, 0);
	assert_string_equal(ibid_field_text(work, "/amount"), "12.5");
	assert_string_equal(ibid_work_payload(work), "{\"amount\":12.5}");
	assert_string_equal(ibid_work_key(work), "k-1");
	assert_null(ibid_work_sqlite(work));
	assert_null(ibid_work_postgres(work));
	assert_true(ibid_staged_token(staged) > 0);
	expect_finish(staged, conclude, "executed 201");
	assert_rows(1, 1, 1);
	assert_int_equal(in_state("COMPLETED"), 1);
	expect_stage("charge", "k-1", payload, "replayed executed 201");
	bed_expect(ibid, "charge", "k-1", payload, "replayed executed 201");
	expect_finish(staged, conclude, "replayed executed 201"); /* ended already */
	assert_rows(1, 1, 1);
	ibid_staged_free(staged);
}

static void
a_duplicate_of_a_staged_command_is_answered_at_once_with_its_id(void **state) /* B05 B11 */
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	struct ibid *other = bed_ibid(&bed, NULL);
	struct ibid_result *result = bed_submit(other, "charge", "k-1", payload);
	assert_string_equal(bed_say(result), "in_progress 409");
	assert_string_equal(ibid_result_command_id(result), id_of(staged));
	assert_true(ibid_result_retry_after_ms(result) > 0);
	ibid_result_free(result);
	expect_stage("charge", "k-1", payload, "in_progress 409");
	expect_stage("charge", "k-1", "{\"amount\":13}", "conflict 409");
	ibid_staged_free(staged); /* releases nothing */
	expect_stage("charge", "k-1", payload, "in_progress 409");

	staged = stage(ibid, "charge-human", "k-1"); /* accepted */
	result = bed_submit(other, "charge-human", "k-1", payload);
	assert_string_equal(bed_say(result), "in_progress 202");
	assert_string_equal(ibid_result_command_id(result), id_of(staged));
	ibid_result_free(result);
	ibid_staged_free(staged);
	ibid_close(other);
}

/* A clock whose sleepers are woken by what happens meanwhile. */
struct busy_clock {
	struct env_virtual clock;
	struct ibid_staged *staged; /* ends during the first sleep; NULL: none */
};

static void sleep_while_it_ends(struct env *env, int64_t us)
{
	struct busy_clock *busy = (struct busy_clock *)env;
	if (busy->staged)
		expect_finish(busy->staged, conclude, "executed 201");
	busy->staged = NULL;
	env_virtual_advance(&busy->clock, us);
}

static void a_duplicate_may_wait_briefly_for_the_worker(void **state) /* B05 */
{
	(void)state;
	struct busy_clock busy = {.staged = NULL};
	int64_t begun_us = env_wall_us(env_system());
	env_virtual_init(&busy.clock, begun_us, 1);
	busy.clock.env.sleep_us = sleep_while_it_ends;
	struct api_seams seams = {.env = &busy.clock.env};
	struct ibid *other = bed_ibid(&bed, &seams);
	struct ibid_staged *staged = stage(ibid, "charge-inquiry", "k-1");
	bed_expect(other, "charge-inquiry", "k-1", payload, "in_progress 409");
	assert_true(busy.clock.now_us >= begun_us + 200000); /* it has waited */
	busy.staged = staged;
	bed_expect(other, "charge-inquiry", "k-1", payload, "replayed executed 201");
	ibid_staged_free(staged);
	ibid_close(other);
}

static void a_worker_may_reject_fail_or_not_know(void **state) /* B06 */
{
	(void)state;
	struct ibid_result *result = NULL;
	struct ibid_err err;
	struct ibid_staged *staged = stage(ibid, "charge", "rejected");
	expect_finish(staged, decline, "rejected 409");
	ibid_staged_free(staged);
	expect_stage("charge", "rejected", payload, "replayed rejected 409");

	staged = stage(ibid, "charge", "again");
	int64_t token = ibid_staged_token(staged);
	char id[64];
	snprintf(id, sizeof id, "%s", id_of(staged));
	assert_int_equal(ibid_staged_fail(staged, true, "no connection", &result, &err), IBID_OK);
	assert_string_equal(bed_say(result), "failed 500");
	assert_string_equal(ibid_result_text(result), "no connection");
	ibid_result_free(result);
	struct ibid_staged *second = stage(ibid, "charge", "again");
	assert_string_equal(id_of(second), id); /* B11: the same operation */
	assert_true(ibid_staged_token(second) > token);
	assert_fenced(staged);
	expect_finish(second, conclude, "executed 201");
	ibid_staged_free(second);
	ibid_staged_free(staged);

	staged = stage(ibid, "charge", "final");
	assert_int_equal(ibid_staged_fail(staged, false, "no such card", &result, &err), IBID_OK);
	assert_string_equal(bed_say(result), "rejected 500");
	ibid_result_free(result);
	ibid_staged_free(staged);
	expect_stage("charge", "final", payload, "replayed rejected 500");

	staged = stage(ibid, "charge", "unknown");
	assert_int_equal(ibid_staged_unknown(staged, "no answer", &result, &err), IBID_OK);
	assert_string_equal(bed_say(result), "unknown 500");
	ibid_result_free(result);
	ibid_staged_free(staged);
	expect_stage("charge", "unknown", payload, "unknown 500");
	assert_int_equal(in_state("UNKNOWN"), 1);
	assert_rows(1, 1, 1);
}

static void a_finish_that_fails_changes_nothing_and_may_be_repeated(void **state) /* I1 I4 */
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	struct ibid_result *result = NULL;
	struct ibid_err err;
	int fail_times = 1;
	assert_int_equal(ibid_staged_finish(staged, conclude, &fail_times, &result, &err), IBID_FAILED);
	assert_non_null(strstr(err.text, "the test's handler fails"));
	assert_int_equal(ibid_staged_finish(staged, skip_a_version, NULL, &result, &err), IBID_FAILED);
	assert_non_null(strstr(err.text, "VERSION_CONFLICT"));
	assert_int_equal(ibid_staged_finish(staged, NULL, NULL, &result, &err), IBID_MISUSE);
	assert_int_equal(in_state("IN_PROGRESS"), 1);
	assert_rows(0, 0, 0);
	expect_stage("charge", "k-1", payload, "in_progress 409");
	expect_finish(staged, conclude, "executed 201");
	assert_rows(1, 1, 1);
	ibid_staged_free(staged);
}

/* The work is another service's: only whoever calls it stages the command. */
static void work_of_another_service_is_staged_but_not_run_here(void **state)
{
	(void)state;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	assert_int_equal(
	    ibid_submit(ibid,
	                IBID_COMMAND(.tenant = "t", .client = "c", .operation = "charge-upstream",
	                             .key = "k", .payload = payload),
	                &result, &err),
	    IBID_MISUSE);
	assert_string_equal(err.text, "operation charge-upstream is staged: it is run by `ibid proxy`");
	assert_int_equal(ibid_handle(ibid, "charge-upstream", conclude, NULL, &err), IBID_MISUSE);
	assert_string_equal(err.text, "operation charge-upstream has `handler: upstream`: another "
	                              "service does its work, called by `ibid proxy`");
	assert_null(result);
	assert_int_equal(rows("ibid.command"), 0);

	struct ibid_staged *staged = stage(ibid, "charge-upstream", "k"), *second = NULL;
	expect_stage("charge-upstream", "k", payload, "in_progress 409");
	struct ibid *other = bed_ibid(&bed, NULL); /* its contract is compared with the one kept */
	assert_int_equal(
	    try_stage(other, "charge-upstream", "k", "{\"amount\":13}", &second, &result, &err),
	    IBID_OK);
	assert_null(second);
	assert_string_equal(bed_say(result), "conflict 409");
	ibid_result_free(result);
	ibid_close(other);
	expect_finish(staged, conclude_plainly, "executed 201");
	ibid_staged_free(staged);
	expect_stage("charge-upstream", "k", payload, "replayed executed 201");
	assert_rows(0, 0, 1);
}

static void wrong_calls_are_refused_and_leave_nothing(void **state)
{
	(void)state;
	struct ibid_staged *staged = NULL;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	assert_int_equal(try_stage(ibid, "plain", "k", payload, &staged, &result, &err), IBID_MISUSE);
	assert_int_equal(try_stage(ibid, "nothing", "k", payload, &staged, &result, &err),
	                 IBID_NOT_FOUND);
	assert_int_equal(ibid_submit(ibid,
	                             IBID_COMMAND(.tenant = "t", .client = "c", .operation = "charge",
	                                          .key = "k", .payload = payload),
	                             &result, &err),
	                 IBID_MISUSE);
	assert_non_null(strstr(err.text, "ibid_stage"));
	assert_int_equal(ibid_handle(ibid, "charge", conclude, NULL, &err), IBID_MISUSE);
	assert_int_equal(ibid_handle_inquiry(ibid, "charge", NULL, NULL, &err), IBID_MISUSE);
	assert_int_equal(rows("ibid.command"), 0);
	expect_stage("charge", "k", "{\"amount\":0}", "rejected 422");
	assert_null(staged);
	assert_null(result);
}

/* ---- Leases --------------------------------------------------------------------------------- */

static void a_lease_ends_by_the_clock_and_is_renewed(void **state) /* B06 */
{
	(void)state;
	struct env_virtual clock;
	env_virtual_init(&clock, INT64_C(1900000000000000), 1);
	struct api_seams seams = {.env = &clock.env};
	struct ibid *other = bed_ibid(&bed, &seams);
	struct ibid_staged *staged = stage(other, "charge", "k-1");
	env_virtual_advance(&clock, 29000000);
	assert_int_equal(recover(other, true).left, 0);
	assert_int_equal(ibid_staged_renew(staged, NULL), IBID_OK);
	env_virtual_advance(&clock, 29000000);
	assert_int_equal(recover(other, true).left, 0);
	env_virtual_advance(&clock, 2000000);
	struct told told = recover(other, true);
	assert_int_equal(told.left, 1);
	assert_string_equal(told.id, id_of(staged));
	assert_int_equal(in_state("IN_PROGRESS"), 1);    /* only told */
	expect_finish(staged, conclude, "executed 201"); /* late, but nobody took it */
	ibid_staged_free(staged);
	ibid_close(other);
}

static void a_renewed_lease_is_not_stale(void **state) /* B06 */
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	end_leases();
	assert_int_equal(recover(ibid, true).left, 1);
	assert_int_equal(ibid_staged_renew(staged, NULL), IBID_OK);
	assert_int_equal(recover(ibid, true).left, 0);
	assert_int_equal(recover(ibid, false).ended, 0);
	expect_finish(staged, conclude, "executed 201");
	ibid_staged_free(staged);
}

struct renewal {
	const char *after; /* this statement of recovery */
	struct ibid_staged *staged;
	struct hook hook;
	bool done;
};

static bool renew_meanwhile(void *user, const struct hook_point *point)
{
	struct renewal *renewal = user;
	if (point->kind != HOOK_AFTER || strcmp(point->statement, renewal->after) != 0 || renewal->done)
		return false;
	renewal->done = true;
	assert_int_equal(ibid_staged_renew(renewal->staged, NULL), IBID_OK);
	return false;
}

static struct store *watch_recovery(void *user, struct store *store)
{
	struct renewal *renewal = user;
	renewal->hook = (struct hook){renew_meanwhile, user};
	store->hook = &renewal->hook;
	return store;
}

static void a_lease_renewed_while_recovery_looks_is_not_taken(void **state) /* B06 */
{
	(void)state;
	/* On SQLite nobody can renew while recovery has claimed it. */
	static const char *const statements[] = {"command_list_stale", "claim_find"};
	for (size_t i = 0; i < (bed.kind == BED_SQLITE ? 1 : 2); i++) {
		struct renewal renewal = {.after = statements[i],
		                          .staged = stage(ibid, "charge", statements[i])};
		struct api_seams seams = {.wrap = watch_recovery, .user = &renewal};
		struct ibid *other = bed_ibid(&bed, &seams);
		end_leases();
		struct told told = recover(other, false);
		assert_true(renewal.done);
		assert_int_equal(told.ended + told.left, 0);
		expect_finish(renewal.staged, conclude, "executed 201");
		ibid_staged_free(renewal.staged);
		ibid_close(other);
	}
}

static void a_lease_without_an_end_is_locked_and_never_taken(void **state) /* B06 */
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	lock_leases();
	struct told told = recover(ibid, false);
	assert_int_equal(told.ended + told.left, 0);
	assert_int_equal(in_state("IN_PROGRESS"), 1);
	expect_stage("charge", "k-1", payload, "in_progress 409");
	expect_finish(staged, conclude, "executed 201");
	ibid_staged_free(staged);
}

/* ---- Recovery ------------------------------------------------------------------------------- */

static void a_fenced_worker_finishes_late_and_changes_nothing(void **state) /* B06 I6 */
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	add_charge(id_of(staged), "done");
	end_leases();
	struct told told = recover(ibid, false);
	assert_string_equal(told.said, "executed 201");
	assert_string_equal(told.id, id_of(staged));
	assert_rows(1, 1, 1);
	assert_fenced(staged);
	assert_rows(1, 1, 1);
	expect_stage("charge", "k-1", payload, "replayed executed 201");
	ibid_staged_free(staged);
}

static void the_recovery_script_looks_at_business_state(void **state) /* B06 */
{
	(void)state;
	static const struct {
		const char *charge, *said, *after;
	} cases[] = {
	    {"done", "executed 201", "replayed executed 201"},
	    {"declined", "rejected 409", "replayed rejected 409"},
	    {"not sent", "failed 500", "staged"},
	    {"some other", "unknown 500", "unknown 500"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ibid_staged *staged = stage(ibid, "charge", cases[i].charge);
		add_charge(id_of(staged), cases[i].charge);
		end_leases();
		struct told told = recover(ibid, false);
		assert_string_equal(told.said, cases[i].said);
		expect_stage("charge", cases[i].charge, payload, cases[i].after);
		ibid_staged_free(staged);
		lock_leases(); /* the one that was staged again is not for the next round */
	}
	assert_rows(4, 1, 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.audit where outcome = 'executed' "
	                                  "and client = 'c' and actor = 'a'"),
	                 1);
}

/* ---- Where it came from --------------------------------------------------------------------- */

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static struct ibid_staged *stage_traced(const char *operation, const char *key)
{
	struct ibid_staged *staged = NULL;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (ibid_stage(ibid,
	               IBID_COMMAND(.tenant = "t", .client = "c", .actor = "a", .operation = operation,
	                            .key = key, .payload = payload, .correlation_id = "corr",
	                            .causation_id = "cause", .traceparent = TRACE, .tracestate = "a=1"),
	               &staged, &result, &err))
		fail_msg("stage %s: %s", key, err.text);
	assert_non_null(staged);
	return staged;
}

/* Rows of `table` that say where the command came from, and rows that say nothing of it. */
static int64_t traced(const char *table, const char *key, bool told)
{
	static const char all[] = "x.correlation_id = 'corr' and x.causation_id = 'cause' and "
	                          "x.traceparent = '" TRACE "' and x.tracestate = 'a=1'";
	static const char none[] = "x.correlation_id is null and x.causation_id is null and "
	                           "x.traceparent is null and x.tracestate is null";
	bool own = strcmp(table, "ibid.command") == 0;
	return bed_number(&bed,
	                  "select count(*) from ibid.command c join %s x on x.tenant = c.tenant and "
	                  "x.%s = c.id where c.key = '%s' and %s",
	                  table, own ? "id" : "command_id", key, told ? all : none);
}

static void where_it_came_from_is_known_while_it_is_staged_and_after(void **state) /* B06 K02 */
{
	(void)state;
	struct ibid_staged *staged = stage_traced("charge", "k-1");
	assert_int_equal(traced("ibid.command", "k-1", true), 1);
	expect_finish(staged, conclude, "executed 201");
	assert_int_equal(traced("ibid.command", "k-1", false), 1); /* its audit entry has it now */
	assert_int_equal(traced("ibid.audit", "k-1", true), 1);
	assert_int_equal(traced("ibid.event", "k-1", true), 1);
	ibid_staged_free(staged);
	staged = stage_traced("charge", "k-2");
	expect_finish(staged, decline, "rejected 409");
	assert_int_equal(traced("ibid.command", "k-2", true), 1);
	ibid_staged_free(staged);
	staged = stage(ibid, "charge", "k-3"); /* whose sender said nothing */
	expect_finish(staged, conclude, "executed 201");
	assert_int_equal(traced("ibid.audit", "k-3", false), 1);
	assert_int_equal(traced("ibid.event", "k-3", false), 1);
	ibid_staged_free(staged);
}

static void recovery_goes_on_with_where_it_came_from(void **state) /* B06 K02 */
{
	(void)state;
	struct ibid *other = bed_ibid(&bed, NULL);
	struct ibid_staged *done = stage_traced("charge", "done"),
	                   *lost = stage_traced("charge", "lost");
	struct ibid_staged *human = stage_traced("charge-human", "human");
	add_charge(id_of(done), "done");
	end_leases();
	assert_int_equal(recover(other, false).ended, 3);
	assert_int_equal(traced("ibid.audit", "done", true), 1);
	assert_int_equal(traced("ibid.event", "done", true), 1);
	assert_int_equal(traced("ibid.command", "lost", true), 1);
	assert_int_equal(traced("ibid.command", "human", true), 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.exception where correlation_id = "
	                                  "'corr' and trace_id = '0af7651916cd43dd8448eb211c80319c'"),
	                 2);
	ibid_staged_free(done);
	ibid_staged_free(lost);
	ibid_staged_free(human);
	ibid_close(other);
}

static void a_second_run_has_its_own_trace(void **state) /* K02 */
{
	(void)state;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	struct ibid_staged *staged = stage_traced("charge", "k-1");
	assert_int_equal(ibid_staged_fail(staged, true, "not today", &result, &err), IBID_OK);
	ibid_result_free(result);
	ibid_staged_free(staged);
	assert_int_equal(traced("ibid.command", "k-1", true), 1);
	staged = stage(ibid, "charge", "k-1");
	assert_int_equal(traced("ibid.command", "k-1", false), 1);
	expect_finish(staged, conclude, "executed 201");
	assert_int_equal(traced("ibid.event", "k-1", false), 1);
	ibid_staged_free(staged);
}

static void a_broken_recovery_script_leaves_the_command_for_the_next_time(void **state) /* B06 */
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	add_charge(id_of(staged), "done");
	bed_exec(&bed, "alter table charge rename to charge_away");
	end_leases();
	struct told told = recover(ibid, false);
	assert_int_equal(told.ended, 0);
	assert_int_equal(told.left, 1);
	assert_non_null(strstr(told.text, "charge"));
	assert_int_equal(in_state("IN_PROGRESS"), 1);
	assert_fenced(staged); /* but the silent worker is out */
	bed_exec(&bed, "alter table charge_away rename to charge");
	assert_int_equal(recover(ibid, false).ended, 0); /* its new lease runs */
	end_leases();
	assert_string_equal(recover(ibid, false).said, "executed 201");
	ibid_staged_free(staged);
}

static void what_a_person_must_decide_is_unknown_and_stays_so(void **state) /* B01, B06 */
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge-human", "k-1");
	end_leases();
	struct told told = recover(ibid, false);
	assert_string_equal(told.said, "unknown 500");
	expect_stage("charge-human", "k-1", payload, "unknown 500");
	end_leases();
	assert_int_equal(recover(ibid, false).ended, 0);
	assert_fenced(staged);
	assert_rows(0, 0, 0);
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.exception where state = 'OPEN' and "
	                            "owner = 'tests' and reason = 'OUTCOME_UNKNOWN' and "
	                            "subject_id = '%s'",
	                            id_of(staged)),
	                 1);
	ibid_staged_free(staged);
}

static enum ibid_code inquire(struct ibid_staged *staged, void *user)
{
	const char *answer = user;
	struct ibid_result *result = NULL;
	struct ibid_err err;
	enum ibid_code code = IBID_OK;
	assert_string_equal(ibid_work_payload(ibid_staged_work(staged)), "");
	assert_null(ibid_field_text(ibid_staged_work(staged), "/amount"));
	if (strcmp(answer, "done") == 0)
		code = ibid_staged_finish(staged, conclude, NULL, &result, &err);
	else if (strcmp(answer, "not done") == 0)
		code = ibid_staged_fail(staged, true, "the partner does not know it", &result, &err);
	else if (strcmp(answer, "away") == 0)
		return IBID_UNAVAILABLE;
	ibid_result_free(result);
	return code;
}

static void the_inquiry_of_a_program_decides(void **state) /* B06 */
{
	(void)state;
	static const struct {
		const char *answer, *said, *after;
		size_t left;
	} cases[] = {
	    {"done", "replayed executed 201", "replayed executed 201", 0},
	    {"not done", "replayed failed 500", "staged", 0},
	    {"silence", "unknown 500", "unknown 500", 0},
	    {"away", "", "in_progress 409", 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ibid_staged *staged = stage(ibid, "charge-inquiry", cases[i].answer);
		assert_int_equal(ibid_handle_inquiry(ibid, "charge-inquiry", inquire,
		                                     (void *)(uintptr_t)cases[i].answer, NULL),
		                 IBID_OK);
		end_leases();
		struct told told = recover(ibid, false);
		assert_string_equal(told.said, cases[i].said);
		assert_int_equal(told.left, cases[i].left);
		expect_stage("charge-inquiry", cases[i].answer, payload, cases[i].after);
		ibid_staged_free(staged);
		lock_leases();
	}
	assert_rows(1, 1, 1);
}

static void without_a_registered_inquiry_a_person_decides(void **state) /* B06 */
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge-inquiry", "k-1");
	end_leases();
	assert_string_equal(recover(ibid, false).said, "unknown 500");
	ibid_staged_free(staged);
}

/* ---- Kills and races ------------------------------------------------------------------------ */

/* Run in a child that SIGKILL ends, or that exits with 0. */
static bool killed(void (*run)(void *), void *user)
{
	int status;
	int64_t start = bed_mark(&bed);
	pid_t child = fork();
	if (child == 0) {
		run(user);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	bed_settle_since(&bed, start);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGKILL);
		return true;
	}
	assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}

static void stage_and_die(void *user)
{
	struct ibid *own = bed_ibid(&bed, NULL);
	(void)stage(own, "charge", user);
	kill(getpid(), SIGKILL);
}

static void a_worker_killed_between_stage_and_finish_is_recovered(void **state) /* B06 */
{
	(void)state;
	char key[] = "k-1";
	assert_true(killed(stage_and_die, key));
	assert_int_equal(in_state("IN_PROGRESS"), 1);
	expect_stage("charge", "k-1", payload, "in_progress 409");
	assert_int_equal(recover(ibid, false).ended, 0);
	bed_exec(&bed, "insert into charge (command_id, state) select cast(id as text), 'done' from "
	               "ibid.command");
	end_leases();
	assert_string_equal(recover(ibid, false).said, "executed 201");
	expect_stage("charge", "k-1", payload, "replayed executed 201");
	assert_rows(1, 1, 1);
}

static unsigned points_of_opening(enum fault_kind kind)
{
	struct fault fault = {.kind = kind};
	ibid_close(bed_ibid(&bed, &(struct api_seams){.wrap = fault_set, .user = &fault}));
	return fault.points;
}

static void recover_with_fault(void *user)
{
	struct api_seams seams = {.wrap = fault_set, .user = user};
	struct ibid *own = bed_ibid(&bed, &seams);
	size_t count;
	(void)!ibid_recover(own, IBID_RECOVERY(.tenant = "t"), &count, NULL);
	ibid_close(own);
}

static void a_recovery_killed_at_any_statement_is_repeated_and_ends_it_once(void **state) /* B06 */
{
	(void)state;
	unsigned opening = points_of_opening(FAULT_KILL), n = 1;
	fault_path("recovery");
	for (bool dead = true; dead; n++) {
		char key[32];
		snprintf(key, sizeof key, "k-%u", n);
		struct ibid_staged *staged = stage(ibid, "charge", key);
		struct fault at = {.kind = FAULT_KILL, .at = opening + n};
		add_charge(id_of(staged), "done");
		ibid_staged_free(staged); /* a child that inherits it is said to leak it */
		end_leases();
		dead = killed(recover_with_fault, &at);
		end_leases();
		(void)recover(ibid, false);
		expect_stage("charge", key, payload, "replayed executed 201");
		assert_rows(n, n, n);
	}
	assert_true(n > 8); /* the kills have met all of it */
}

static void a_finish_that_fails_at_any_statement_ends_it_once(void **state) /* I7 */
{
	(void)state;
	int64_t ended = 0;
	fault_path("finish");
	for (int kind = FAULT_FAIL; kind <= FAULT_LOSE; kind++) {
		unsigned opening = points_of_opening((enum fault_kind)kind);
		bool fired = true;
		for (unsigned n = 1; fired; n++) {
			char key[32];
			struct fault at = {.kind = (enum fault_kind)kind, .at = opening + n};
			struct api_seams seams = {.wrap = fault_set, .user = &at};
			struct ibid *own = bed_ibid(&bed, &seams);
			struct ibid_staged *staged = NULL;
			struct ibid_result *result = NULL;
			struct ibid_err err;
			snprintf(key, sizeof key, "k-%d-%u", kind, n);
			/* What the caller of a real one does: the same again. */
			for (int turn = 0; turn < 3 && !staged; turn++) {
				(void)!try_stage(own, "charge", key, payload, &staged, &result, &err);
				ibid_result_free(result);
				result = NULL;
			}
			if (!staged) { /* staged, but its worker was not told: recovery has it */
				assert_int_equal(in_state("IN_PROGRESS"), 1);
				end_leases();
				assert_string_equal(recover(ibid, false).said, "unknown 500");
			} else {
				for (int turn = 0; turn < 3 && !result; turn++)
					(void)!ibid_staged_finish(staged, conclude, NULL, &result, &err);
				assert_non_null(result);
				assert_int_equal(ibid_result_decision(result), IBID_DECISION_EXECUTED);
				ended++;
			}
			fired = at.fired;
			assert_rows(ended, ended, ended);
			ibid_result_free(result);
			ibid_staged_free(staged);
			ibid_close(own);
		}
	}
	assert_int_equal(in_state("IN_PROGRESS"), 0);
}

struct recoverer {
	struct ibid *ibid;
	pthread_barrier_t *start;
	size_t count;
	enum ibid_code code;
};

static void *recover_in_thread(void *user)
{
	struct recoverer *recoverer = user;
	pthread_barrier_wait(recoverer->start);
	recoverer->code = ibid_recover(recoverer->ibid, IBID_RECOVERY(.tenant = "t"), &recoverer->count,
	                               NULL);
	return NULL;
}

static void two_recover_at_once_and_each_command_is_ended_by_one(void **state) /* B06 I6 */
{
	(void)state;
	enum { COMMANDS = 12 };
	struct recoverer recoverers[2];
	pthread_t threads[2];
	pthread_barrier_t start;
	for (int i = 0; i < COMMANDS; i++) {
		char key[32];
		snprintf(key, sizeof key, "k-%d", i);
		struct ibid_staged *staged = stage(ibid, "charge", key);
		add_charge(id_of(staged), "done");
		ibid_staged_free(staged);
	}
	end_leases();
	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < 2; i++) {
		recoverers[i] = (struct recoverer){.ibid = bed_ibid(&bed, NULL), .start = &start};
		pthread_create(&threads[i], NULL, recover_in_thread, &recoverers[i]);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(recoverers[i].code, IBID_OK);
		ibid_close(recoverers[i].ibid);
	}
	pthread_barrier_destroy(&start);
	assert_int_equal(recoverers[0].count + recoverers[1].count, COMMANDS);
	assert_int_equal(in_state("COMPLETED"), COMMANDS);
	assert_rows(COMMANDS, COMMANDS, COMMANDS);
}

struct finisher {
	struct ibid_staged *staged;
	struct ibid_result *result;
	enum ibid_code code;
};

static void *finish_in_thread(void *user)
{
	struct finisher *finisher = user;
	finisher->code = ibid_staged_finish(finisher->staged, conclude, NULL, &finisher->result, NULL);
	return NULL;
}

struct crowd {
	struct ibid *ibid;
	_Atomic bool over;
};

static void *send_again_and_again(void *user)
{
	struct crowd *crowd = user;
	while (!crowd->over) {
		struct ibid_result *result = bed_submit(crowd->ibid, "charge", "k-1", payload);
		enum ibid_decision decision = ibid_result_decision(result);
		assert_true(decision == IBID_DECISION_IN_PROGRESS || decision == IBID_DECISION_EXECUTED);
		assert_string_not_equal(ibid_result_command_id(result), "");
		ibid_result_free(result);
	}
	return NULL;
}

static void a_worker_finishes_amid_a_crowd_of_duplicates(void **state) /* B05 */
{
	(void)state;
	enum { SENDERS = 6 };
	pthread_t threads[SENDERS];
	struct crowd crowd = {.ibid = ibid};
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	for (int i = 0; i < SENDERS; i++)
		pthread_create(&threads[i], NULL, send_again_and_again, &crowd);
	for (int i = 0; i < 20; i++)
		assert_int_equal(ibid_staged_renew(staged, NULL), IBID_OK);
	expect_finish(staged, conclude, "executed 201");
	crowd.over = true;
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	assert_rows(1, 1, 1);
	ibid_staged_free(staged);
}

static void a_worker_that_wakes_up_races_recovery_and_one_of_them_ends_it(void **state) /* I6 */
{
	(void)state;
	struct ibid *other = bed_ibid(&bed, NULL);
	int64_t finished = 0;
	enum { ROUNDS = 16 };
	for (int round = 0; round < ROUNDS; round++) {
		char key[32];
		pthread_t thread;
		pthread_barrier_t start;
		snprintf(key, sizeof key, "k-%d", round);
		struct finisher finisher = {.staged = stage(ibid, "charge-human", key)};
		struct recoverer recoverer = {.ibid = other, .start = &start};
		end_leases();
		pthread_barrier_init(&start, NULL, 2);
		pthread_create(&thread, NULL, recover_in_thread, &recoverer);
		pthread_barrier_wait(&start);
		finish_in_thread(&finisher);
		pthread_join(thread, NULL);
		pthread_barrier_destroy(&start);
		assert_int_equal(recoverer.code, IBID_OK);
		assert_int_equal(finisher.code, recoverer.count ? IBID_FENCED : IBID_OK);
		finished += finisher.code == IBID_OK;
		assert_rows(finished, finished, finished);
		ibid_result_free(finisher.result);
		ibid_staged_free(finisher.staged);
	}
	assert_int_equal(in_state("COMPLETED"), finished);
	assert_int_equal(in_state("UNKNOWN"), ROUNDS - finished);
	ibid_close(other);
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(a_staged_command_is_finished_whole_in_a_second_transaction),
	    TEST(a_duplicate_of_a_staged_command_is_answered_at_once_with_its_id),
	    TEST(a_duplicate_may_wait_briefly_for_the_worker),
	    TEST(a_worker_may_reject_fail_or_not_know),
	    TEST(a_finish_that_fails_changes_nothing_and_may_be_repeated),
	    TEST(work_of_another_service_is_staged_but_not_run_here),
	    TEST(wrong_calls_are_refused_and_leave_nothing),
	    TEST(a_renewed_lease_is_not_stale),
	    TEST(a_lease_renewed_while_recovery_looks_is_not_taken),
	    TEST(a_lease_without_an_end_is_locked_and_never_taken),
	    TEST(a_fenced_worker_finishes_late_and_changes_nothing),
	    TEST(the_recovery_script_looks_at_business_state),
	    TEST(where_it_came_from_is_known_while_it_is_staged_and_after),
	    TEST(recovery_goes_on_with_where_it_came_from),
	    TEST(a_second_run_has_its_own_trace),
	    TEST(a_broken_recovery_script_leaves_the_command_for_the_next_time),
	    TEST(what_a_person_must_decide_is_unknown_and_stays_so),
	    TEST(the_inquiry_of_a_program_decides),
	    TEST(without_a_registered_inquiry_a_person_decides),
	    TEST(a_worker_killed_between_stage_and_finish_is_recovered),
	    TEST(a_recovery_killed_at_any_statement_is_repeated_and_ends_it_once),
	    TEST(a_finish_that_fails_at_any_statement_ends_it_once),
	    TEST(two_recover_at_once_and_each_command_is_ended_by_one),
	    TEST(a_worker_finishes_amid_a_crowd_of_duplicates),
	    TEST(a_worker_that_wakes_up_races_recovery_and_one_of_them_ends_it),
	};
	const struct CMUnitTest by_our_clock[] = {TEST(a_lease_ends_by_the_clock_and_is_renewed)};
	int failed = cmocka_run_group_tests_name("staged", tests, NULL, NULL);
	if (bed.kind == BED_SQLITE) /* the server's clock is not ours to move: see the store's suite */
		failed += cmocka_run_group_tests_name("staged, our clock", by_our_clock, NULL, NULL);
	return failed;
}
