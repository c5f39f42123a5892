/* SPDX-License-Identifier: Apache-2.0 */
/* test_correction.c -- `failures.validation: retry`: an invalid payload leaves its key free for the
 * corrected one, whichever way the command goes through the ledger. What is accepted binds it. */
#include "command/group.h"
#include "support/bed.h"
#include "support/ended.h"
#include "support/looks.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/correction"

static const int64_t day_us = INT64_C(86400) * 1000000;

static struct bed bed;
static struct ibid *ibid;

/* Operations that go different ways: step by step, a script, in one trip on PostgreSQL, and in a
 * transaction with others. */
static const char *const operations[] = {"call", "pay", "pay-brief", "pay-shared", "pay-kept"};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static const char invalid[] = "{\"account\":\"a\",\"amount\":0}";
static const char corrected[] = "{\"account\":\"a\",\"amount\":1}";

static int64_t rows(const char *table)
{
	return bed_number(&bed, "select count(*) from %s", table);
}

/* ---- A callback that pays, and fails where the test says so --------------------------------- */

static bool handler_fails, handler_rejects;

static bool pay(struct ibid_work *work)
{
	const char *values[] = {ibid_work_tenant(work), ibid_work_command_id(work),
	                        ibid_field_text(work, "/amount")};
	sqlite3 *db = ibid_work_sqlite(work);
	if (!db) {
		PGresult *result = PQexecParams(
		    ibid_work_postgres(work),
		    "insert into payment (tenant, id, amount) values ($1, $2::uuid, $3::numeric)", 3, NULL,
		    values, NULL, NULL, 0);
		bool paid = PQresultStatus(result) == PGRES_COMMAND_OK;
		PQclear(result);
		return paid;
	}
	sqlite3_stmt *statement = NULL;
	bool good = sqlite3_prepare_v2(db, "insert into payment (tenant, id, amount) values (?, ?, ?)",
	                               -1, &statement, NULL) == SQLITE_OK;
	for (int i = 0; good && i < 3; i++)
		sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_TRANSIENT);
	good = good && sqlite3_step(statement) == SQLITE_DONE;
	sqlite3_finalize(statement);
	return good;
}

static enum ibid_code call(struct ibid_work *work, void *user)
{
	(void)user;
	if (!pay(work))
		return ibid_fail(work, "the insert failed");
	if (handler_fails)
		return ibid_fail(work, "as the test wants it");
	if (handler_rejects)
		return ibid_reject(work, "NO", 409, "as the test wants it");
	return ibid_answer(work, 201, "{}");
}

/* ---- The bed -------------------------------------------------------------------------------- */

static struct ibid *open_with(const struct api_seams *seams)
{
	struct ibid *opened = bed_ibid(&bed, seams);
	assert_int_equal(ibid_handle(opened, "call", call, NULL, NULL), IBID_OK);
	return opened;
}

static int set_up(void **state)
{
	(void)state;
	handler_fails = handler_rejects = false;
	bed_open(&bed, FIXTURE);
	ibid = open_with(NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ibid_close(ibid);
	bed_close(&bed);
	return 0;
}

static int64_t evidence(const char *operation)
{
	return bed_number(
	    &bed,
	    "select coalesce(sum(e.count), 0) from ibid.evidence e join ibid.command c on "
	    "c.tenant = e.tenant and c.id = e.command_id where c.operation = '%s'",
	    operation);
}

static int64_t payments(const char *operation)
{
	return bed_number(&bed,
	                  "select count(*) from payment p join ibid.command c on c.tenant = p.tenant "
	                  "and c.id = p.id where c.operation = '%s'",
	                  operation);
}

/* Refused, and the key is free. */
static void expect_correctable(const char *operation, const char *key, const char *payload)
{
	struct ibid_result *result = bed_submit(ibid, operation, key, payload);
	assert_string_equal(bed_say(result), "rejected 422");
	assert_true(ibid_result_correctable(result));
	assert_string_equal(ibid_result_reason(result), "INVALID_PAYLOAD");
	assert_non_null(strstr(ibid_result_body(result), "\"/problems/invalid-payload\""));
	assert_non_null(strstr(ibid_result_body(result), "\"pointer\":\"/amount\""));
	assert_int_equal(ibid_result_retry_after_ms(result), 0); /* waiting does not help */
	ibid_result_free(result);
}

/* Whatever it says, the key is not free. */
static void expect_bound(const char *operation, const char *key, const char *payload,
                         const char *expected)
{
	struct ibid_result *result = bed_submit(ibid, operation, key, payload);
	assert_string_equal(bed_say(result), expected);
	assert_false(ibid_result_correctable(result));
	ibid_result_free(result);
}

/* ---- Correcting ----------------------------------------------------------------------------- */

static void a_corrected_payload_runs_and_the_late_original_is_a_conflict(void **state) /* B03 B04 */
{
	(void)state;
	for (int i = 0; i < OPERATIONS; i++) {
		const char *operation = operations[i];
		expect_correctable(operation, "k", invalid);
		assert_int_equal(evidence(operation), 0);
		expect_bound(operation, "k", corrected, "executed 201");
		assert_int_equal(evidence(operation), 1); /* of what was refused */
		expect_bound(operation, "k", invalid, "conflict 409");
		assert_int_equal(evidence(operation), 2);
		expect_bound(operation, "k", "{\"account\":\"a\",\"amount\":2}", "conflict 409");
		expect_bound(operation, "k", corrected, "replayed executed 201");
		assert_int_equal(payments(operation), 1);
	}
	assert_int_equal(rows("ibid.command"), OPERATIONS);
	assert_int_equal(rows("ibid.audit"), OPERATIONS);
	assert_int_equal(rows("payment"), OPERATIONS);
}

static void expect_kept(const char *expected)
{
	struct ibid_result *result = bed_submit(ibid, "pay-kept", "k", expected);
	char *kept = NULL;
	size_t size = 0;
	assert_int_equal(ibid_payload(ibid, "t", ibid_result_command_id(result), &kept, &size, NULL),
	                 IBID_OK);
	assert_string_equal(kept, expected);
	ibid_free(kept);
	ibid_result_free(result);
}

static void the_payload_that_is_kept_is_the_last_that_came(void **state)
{
	(void)state;
	expect_kept(invalid);
	expect_kept(corrected);
	expect_bound("pay-kept", "k", invalid, "conflict 409");
	expect_kept(corrected);
	assert_int_equal(rows("ibid.payload"), 1);
}

static void each_payload_that_is_refused_stays_as_evidence(void **state) /* B04 */
{
	(void)state;
	static const char other[] = "{\"account\":\"a\",\"amount\":-1}";
	for (int i = 0; i < OPERATIONS; i++) {
		const char *operation = operations[i];
		expect_correctable(operation, "k", invalid);
		expect_correctable(operation, "k", invalid); /* the same is looked at again */
		assert_int_equal(evidence(operation), 0);
		expect_correctable(operation, "k", other);
		expect_correctable(operation, "k", invalid);
		assert_int_equal(evidence(operation), 2);
		expect_bound(operation, "k", corrected, "executed 201");
		assert_int_equal(evidence(operation), 3);
		expect_bound(operation, "k", other, "conflict 409");
		assert_int_equal(payments(operation), 1);
	}
	assert_int_equal(rows("ibid.evidence"), 2 * OPERATIONS); /* one each, counted */
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command where attempts = 5"),
	                 OPERATIONS);
}

static void a_refused_payload_runs_once_the_contract_accepts_it(void **state)
{
	(void)state;
	expect_correctable("call", "k", invalid);
	ibid_close(ibid);
	bed_replace(&bed, "call.yaml", "version: 1", "version: 2");
	bed_replace(&bed, "call.yaml", "above: 0", "at_least: 0");
	bed_init(&bed);
	ibid = open_with(NULL);
	expect_bound("call", "k", invalid, "executed 201");
	expect_bound("call", "k", invalid, "replayed executed 201");
	expect_bound("call", "k", corrected, "conflict 409");
	assert_int_equal(payments("call"), 1);
}

static void a_key_without_a_correction_expires_like_others(void **state) /* B18 */
{
	(void)state;
	struct env_virtual clock;
	env_virtual_init(&clock, INT64_C(1900000000) * 1000000, 7);
	ibid_close(ibid);
	ibid = open_with(&(struct api_seams){.env = &clock.env});
	expect_correctable("call", "k", invalid);
	env_virtual_advance(&clock, 31 * day_us);
	expect_bound("call", "k", corrected, "expired 410");
	assert_int_equal(rows("payment"), 0);
	ibid_close(ibid); /* before its clock goes */
	ibid = open_with(NULL);
}

/* ---- What binds ----------------------------------------------------------------------------- */

static void what_was_accepted_binds_the_key_though_it_fails(void **state) /* B04 */
{
	(void)state;
	expect_correctable("call", "failed", invalid);
	expect_correctable("call", "rejected", invalid);
	handler_fails = true;
	expect_bound("call", "failed", corrected, "failed 500");
	expect_bound("call", "first", corrected, "failed 500");
	handler_fails = false;
	handler_rejects = true;
	expect_bound("call", "rejected", corrected, "rejected 409");
	handler_rejects = false;
	expect_bound("call", "failed", invalid, "conflict 409");
	expect_bound("call", "first", invalid, "conflict 409");
	expect_bound("call", "rejected", invalid, "conflict 409");
	expect_bound("call", "rejected", corrected, "replayed rejected 409");
	expect_bound("call", "failed", corrected, "executed 201");
	assert_int_equal(rows("payment"), 1);
}

/* Its effect may have been wanted for long: that a newer contract refuses it frees nothing. */
static void a_payload_that_failed_and_is_refused_now_stays_bound(void **state)
{
	(void)state;
	handler_fails = true;
	expect_bound("call", "k", corrected, "failed 500");
	handler_fails = false;
	ibid_close(ibid);
	bed_replace(&bed, "call.yaml", "version: 1", "version: 2");
	bed_replace(&bed, "call.yaml", "above: 0", "above: 1");
	bed_init(&bed);
	ibid = open_with(NULL);
	expect_bound("call", "k", corrected, "failed 422");
	expect_bound("call", "k", "{\"account\":\"a\",\"amount\":2}", "conflict 409");
	assert_int_equal(rows("payment"), 0);
}

static void a_final_refusal_binds_the_key(void **state) /* B03 */
{
	(void)state;
	ibid_close(ibid);
	bed_replace(&bed, "defaults.yaml", "validation: retry", "validation: final");
	for (int i = 0; i < OPERATIONS; i++) {
		char file[64];
		snprintf(file, sizeof file, "%s.yaml", operations[i]);
		bed_replace(&bed, file, "version: 1", "version: 2");
	}
	bed_init(&bed);
	ibid = open_with(NULL);
	for (int i = 0; i < OPERATIONS; i++) {
		expect_bound(operations[i], "k", invalid, "rejected 422");
		expect_bound(operations[i], "k", corrected, "conflict 409");
		expect_bound(operations[i], "k", invalid, "replayed rejected 422");
	}
	assert_int_equal(rows("payment"), 0);
}

/* ---- Races ---------------------------------------------------------------------------------- */

enum { SENDERS = 8, ROUNDS = 6 };

struct sender {
	pthread_t thread;
	pthread_barrier_t *start;
	const char *operation;
	char key[32], payload[64], said[64];
};

/* As a client does: again, while it is in progress or the store is busy. */
static void *send_until_answered(void *user)
{
	struct sender *sender = user;
	bool again = true;
	pthread_barrier_wait(sender->start);
	while (again) {
		struct ibid_result *result = NULL;
		struct ibid_err err = {0};
		enum ibid_code code = ibid_submit(
		    ibid,
		    IBID_COMMAND(.tenant = "t", .client = "c", .actor = "a", .operation = sender->operation,
		                 .key = sender->key, .payload = sender->payload),
		    &result, &err);
		snprintf(sender->said, sizeof sender->said, "%.60s", code ? err.text : bed_say(result));
		again = code ? err.next != IBID_NEXT_NEVER
		             : ibid_result_decision(result) == IBID_DECISION_IN_PROGRESS;
		ibid_result_free(result);
	}
	return NULL;
}

/* All at once under one key; `amount` gives each its payload. How many heard that they executed. */
static int race(const char *operation, const char *key, int (*amount)(int), struct sender *senders)
{
	pthread_barrier_t start;
	int executed = 0;
	pthread_barrier_init(&start, NULL, SENDERS);
	for (int i = 0; i < SENDERS; i++) {
		senders[i] = (struct sender){.start = &start, .operation = operation};
		snprintf(senders[i].key, sizeof senders[i].key, "%s", key);
		snprintf(senders[i].payload, sizeof senders[i].payload, "{\"account\":\"a\",\"amount\":%d}",
		         amount(i));
		assert_int_equal(pthread_create(&senders[i].thread, NULL, send_until_answered, &senders[i]),
		                 0);
	}
	for (int i = 0; i < SENDERS; i++) {
		pthread_join(senders[i].thread, NULL);
		executed += strcmp(senders[i].said, "executed 201") == 0;
	}
	pthread_barrier_destroy(&start);
	return executed;
}

static int each_its_own(int i)
{
	return i + 1;
}

static int every_other_invalid(int i)
{
	return i % 2;
}

static void of_corrections_that_race_one_wins(void **state) /* B12 */
{
	(void)state;
	struct sender senders[SENDERS];
	for (int round = 0; round < ROUNDS * OPERATIONS; round++) {
		const char *operation = operations[round % OPERATIONS];
		char key[32];
		snprintf(key, sizeof key, "k-%d", round);
		expect_correctable(operation, key, invalid);
		assert_int_equal(race(operation, key, each_its_own, senders), 1);
		for (int i = 0; i < SENDERS; i++)
			if (strcmp(senders[i].said, "executed 201") != 0)
				assert_string_equal(senders[i].said, "conflict 409");
		assert_int_equal(rows("payment"), round + 1);
	}
	assert_int_equal(rows("ibid.audit"), ROUNDS * OPERATIONS);
}

static void of_originals_and_corrections_that_race_one_executes(void **state) /* B12 */
{
	(void)state;
	struct sender senders[SENDERS];
	for (int round = 0; round < ROUNDS * OPERATIONS; round++) {
		const char *operation = operations[round % OPERATIONS];
		char key[32];
		snprintf(key, sizeof key, "k-%d", round);
		assert_int_equal(race(operation, key, every_other_invalid, senders), 1);
		for (int i = 0; i < SENDERS; i++) {
			const char *said = senders[i].said;
			if (i % 2 == 0) /* before the correction, or late */
				assert_true(strcmp(said, "rejected 422") == 0 || strcmp(said, "conflict 409") == 0);
			else
				assert_non_null(strstr(said, "executed 201"));
		}
		expect_bound(operation, key, corrected, "replayed executed 201");
		expect_bound(operation, key, invalid, "conflict 409");
		assert_int_equal(rows("payment"), round + 1);
	}
	assert_int_equal(rows("ibid.audit"), ROUNDS * OPERATIONS);
}

/* ---- In a group ----------------------------------------------------------------------------- */

/* The first command is held until all others wait behind it. */
static struct {
	_Atomic bool holds, held;
	_Atomic size_t wanted;
	_Atomic int groups;
} stage;

static void on_look(void *user, enum look look, bool after, enum ibid_code code)
{
	(void)user;
	(void)code;
	stage.groups += !after && look == LOOK_GROUP;
	if (after || look != LOOK_ALONE || !atomic_exchange(&stage.holds, false))
		return;
	stage.held = true;
	while (group_waiting(ibid->ledger->group) < stage.wanted)
		sched_yield();
}

static struct store *watch(void *user, struct store *store)
{
	return looks_wrap(store, on_look, user);
}

static void corrections_in_a_group_run_beside_their_neighbours(void **state) /* B12 */
{
	(void)state;
	enum { CALLERS = 7 };
	static const struct {
		const char *key;
		int amount;
		const char *expected;
	} calls[CALLERS] = {
	    {"ahead", 1, "executed 201"},       {"corrected-1", 1, "executed 201"},
	    {"fresh-1", 1, "executed 201"},     {"late", 0, "conflict 409"},
	    {"corrected-2", 2, "executed 201"}, {"refused", -1, "rejected 422"},
	    {"fresh-2", 1, "executed 201"},
	};
	struct sender senders[CALLERS];
	pthread_barrier_t alone;
	pthread_barrier_init(&alone, NULL, 1);
	ibid_close(ibid);
	ibid = open_with(&(struct api_seams){.wrap = watch});
	expect_correctable("pay-shared", "corrected-1", invalid);
	expect_correctable("pay-shared", "corrected-2", invalid);
	expect_correctable("pay-shared", "refused", invalid);
	expect_correctable("pay-shared", "late", invalid);
	expect_bound("pay-shared", "late", corrected, "executed 201");
	stage.wanted = 4; /* those that the fields let in */
	stage.held = false;
	stage.groups = 0;
	stage.holds = true;
	for (int i = 0; i < CALLERS; i++) {
		senders[i] = (struct sender){.start = &alone, .operation = "pay-shared"};
		snprintf(senders[i].key, sizeof senders[i].key, "%s", calls[i].key);
		snprintf(senders[i].payload, sizeof senders[i].payload, "{\"account\":\"a\",\"amount\":%d}",
		         calls[i].amount);
		assert_int_equal(pthread_create(&senders[i].thread, NULL, send_until_answered, &senders[i]),
		                 0);
		while (i == 0 && !stage.held)
			sched_yield();
	}
	for (int i = 0; i < CALLERS; i++) {
		pthread_join(senders[i].thread, NULL);
		assert_string_equal(senders[i].said, calls[i].expected);
	}
	pthread_barrier_destroy(&alone);
	assert_int_equal(stage.groups, 1);
	assert_int_equal(payments("pay-shared"), 6);
	assert_int_equal(rows("ibid.audit"), 6);
	expect_bound("pay-shared", "corrected-1", invalid, "conflict 409");
	expect_bound("pay-shared", "corrected-2", invalid, "conflict 409");
	expect_bound("pay-shared", "refused", corrected, "executed 201");
}

/* ---- A commit that is lost ------------------------------------------------------------------ */

static struct ibid *other;

static void open_losing(void)
{
	ibid_close(ibid);
	other = open_with(NULL);
	ibid = open_with(&(struct api_seams){.wrap = ended_wrap});
}

static void correct_otherwise(void)
{
	bed_expect(other, "call", "k", "{\"account\":\"a\",\"amount\":2}", "executed 201");
}

static void a_correction_that_lost_its_commit_does_not_believe_in_anothers(void **state) /* B15 */
{
	(void)state;
	open_losing();
	expect_correctable("call", "k", invalid);
	lost_meanwhile = correct_otherwise;
	expect_bound("call", "k", corrected, "conflict 409");
	assert_null(lost_meanwhile);
	assert_int_equal(payments("call"), 1);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from payment where cast(amount as text) = '2'"), 1);
	ibid_close(other);
}

static void reject_it(void)
{
	handler_rejects = true;
	bed_expect(other, "call", "k", corrected, "rejected 409");
	handler_rejects = false;
}

/* The same payload, run again by two: how it ended is told as it is written. */
static void a_retry_that_lost_its_commit_does_not_believe_in_anothers(void **state) /* B15 */
{
	(void)state;
	open_losing();
	handler_fails = true;
	expect_bound("call", "k", corrected, "failed 500");
	handler_fails = false;
	lost_meanwhile = reject_it;
	expect_bound("call", "k", corrected, "replayed rejected 409");
	assert_null(lost_meanwhile);
	assert_int_equal(payments("call"), 0);
	ibid_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_corrected_payload_runs_and_the_late_original_is_a_conflict),
	    TEST(the_payload_that_is_kept_is_the_last_that_came),
	    TEST(each_payload_that_is_refused_stays_as_evidence),
	    TEST(a_refused_payload_runs_once_the_contract_accepts_it),
	    TEST(a_key_without_a_correction_expires_like_others),
	    TEST(what_was_accepted_binds_the_key_though_it_fails),
	    TEST(a_payload_that_failed_and_is_refused_now_stays_bound),
	    TEST(a_final_refusal_binds_the_key),
	    TEST(of_corrections_that_race_one_wins),
	    TEST(of_originals_and_corrections_that_race_one_executes),
	    TEST(corrections_in_a_group_run_beside_their_neighbours),
	    TEST(a_correction_that_lost_its_commit_does_not_believe_in_anothers),
	    TEST(a_retry_that_lost_its_commit_does_not_believe_in_anothers),
	};
	bed_choose(argc, argv);
	return cmocka_run_group_tests_name("correction", tests, NULL, NULL);
}
