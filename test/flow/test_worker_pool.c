/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_pool.c -- many commands by few threads: what ledger_submit gives, whoever waits (B05,
 * K10).
 */
#include "support/bed.h"
#include "support/looks.h"

#include "command/group.h"
#include "command/worker_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/group"

enum { THREADS = 3, TASKS_MAX = 4096 };

static struct bed bed;
static struct ibid *ibid;
static struct worker_pool *workers;

static int set_up(void **state)
{
	struct ibid_err err = {0};
	(void)state;
	bed_open(&bed, FIXTURE);
	ibid = bed_ibid(&bed, NULL);
	if (worker_pool_new(ibid->ledger, THREADS, TASKS_MAX, &workers, &err))
		fail_msg("workers: %s", err.text);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	worker_pool_free(workers);
	workers = NULL;
	ibid_close(ibid);
	bed_close(&bed);
	return 0;
}

static int64_t rows(const char *table)
{
	return bed_number(&bed, "select count(*) from %s", table);
}

static void assert_effects(int64_t count)
{
	assert_int_equal(rows("entry"), count);
	assert_int_equal(rows("ibid.audit"), count);
	assert_int_equal(rows("ibid.event"), count);
	assert_int_equal(bed_number(&bed, "select coalesce(sum(n), 0) from hot"),
	                 bed_number(&bed, "select coalesce(sum(amount), 0) from entry"));
	/* Each entry is its own command's: none was run with a neighbour's values. */
	assert_int_equal(bed_number(&bed, "select count(distinct id) from ibid.command"),
	                 rows("ibid.command"));
}

/* ---- Errands -------------------------------------------------------------------------------- */

struct errand {
	const char *tenant, *operation;
	char key[32], payload[96];
	enum ibid_code code;
	char said[64], why[600];
	atomic_int calls;
};

static void done(void *user, enum ibid_code code, struct ibid_result *result,
                 const struct ibid_err *err)
{
	struct errand *errand = user;
	errand->code = code;
	if (!code)
		snprintf(errand->said, sizeof errand->said, "%s", bed_say(result));
	snprintf(errand->why, sizeof errand->why, "%s", code ? err->text : ibid_result_text(result));
	ibid_result_free(result);
	errand->calls++;
}

static struct errand adds(const char *operation, unsigned key, int row)
{
	struct errand errand = {.tenant = "t", .operation = operation};
	snprintf(errand.key, sizeof errand.key, "k-%u", key);
	snprintf(errand.payload, sizeof errand.payload, "{\"lane\":\"l%d\",\"row\":%d,\"amount\":%u}",
	         row, row, 100 + key % 800);
	return errand;
}

static enum ibid_code send_errand(struct errand *errand)
{
	struct ibid_err err = {0};
	return worker_pool_submit(workers,
	                          IBID_COMMAND(.tenant = errand->tenant, .client = "c",
	                                       .operation = errand->operation, .key = errand->key,
	                                       .payload = errand->payload),
	                          done, errand, &err);
}

/* Until all of them were told, once each. */
static void come_home(struct errand *errands, size_t count)
{
	worker_pool_free(workers);
	workers = NULL;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(errands[i].calls, 1);
}

static bool ended_well(const struct errand *errand)
{
	return !errand->code && (strcmp(errand->said, "executed 201") == 0 ||
	                         strcmp(errand->said, "replayed executed 201") == 0);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void many_commands_of_every_kind_have_one_effect_each(void **state)
{
	static const char *const operations[] = {"add", "add-hot", "add-cold", "add-free"};
	enum { COUNT = 400 };
	struct errand *errands = calloc(COUNT, sizeof *errands);
	(void)state;
	for (unsigned i = 0; i < COUNT; i++) {
		errands[i] = adds(operations[i % 4], i, (int)(i % 20) + 1);
		assert_int_equal(send_errand(&errands[i]), IBID_OK);
	}
	come_home(errands, COUNT);
	for (unsigned i = 0; i < COUNT; i++)
		if (errands[i].code || strcmp(errands[i].said, "executed 201") != 0)
			fail_msg("%s %s: %s %s", errands[i].operation, errands[i].key, errands[i].said,
			         errands[i].why);
	assert_effects(COUNT);
	free(errands);
}

static void twins_are_one(void **state) /* B12 */
{
	enum { KEYS = 10, COPIES = 20 };
	struct errand *errands = calloc(KEYS * COPIES, sizeof *errands);
	(void)state;
	for (unsigned i = 0; i < KEYS * COPIES; i++) {
		errands[i] = adds(i % 2 ? "add-hot" : "add-cold", i % KEYS, 1);
		assert_int_equal(send_errand(&errands[i]), IBID_OK);
	}
	come_home(errands, KEYS * COPIES);
	unsigned good = 0;
	for (unsigned i = 0; i < KEYS * COPIES; i++) {
		assert_int_equal(errands[i].code, IBID_OK);
		good += ended_well(&errands[i]);
		if (!ended_well(&errands[i]))
			assert_string_equal(errands[i].said, "in_progress 409");
	}
	assert_true(good >= KEYS);
	assert_effects(KEYS); /* keys and operations are both odd or both even */
	free(errands);
}

static void *send_all(void *user)
{
	struct errand *errands = user;
	for (size_t i = 0; errands[i].operation; i++)
		while (send_errand(&errands[i]) == IBID_BUSY)
			;
	return NULL;
}

static void *submit_all(void *user)
{
	struct errand *errands = user;
	for (size_t i = 0; errands[i].operation; i++) {
		struct ibid_result *result = bed_submit(ibid, errands[i].operation, errands[i].key,
		                                        errands[i].payload);
		done(&errands[i], IBID_OK, result, NULL);
	}
	return NULL;
}

/* Threads that wait and commands that have none stand in the same queues. */
static void who_waits_with_a_thread_and_who_does_not_share(void **state)
{
	enum { TEAMS = 6, EACH = 60 };
	struct errand *errands = calloc((size_t)TEAMS * (EACH + 1), sizeof *errands);
	pthread_t threads[TEAMS];
	(void)state;
	for (unsigned team = 0; team < TEAMS; team++) {
		struct errand *own = errands + (size_t)team * (EACH + 1);
		for (unsigned i = 0; i < EACH; i++)
			own[i] = adds("add-hot", team * EACH + i, (int)(i % 5) + 1);
		assert_int_equal(
		    pthread_create(&threads[team], NULL, team % 2 ? submit_all : send_all, own), 0);
	}
	for (unsigned team = 0; team < TEAMS; team++)
		pthread_join(threads[team], NULL);
	worker_pool_free(workers);
	workers = NULL;
	for (unsigned team = 0; team < TEAMS; team++)
		for (unsigned i = 0; i < EACH; i++)
			assert_string_equal(errands[(size_t)team * (EACH + 1) + i].said, "executed 201");
	assert_effects((int64_t)TEAMS * EACH);
	free(errands);
}

static void bad_input_is_told_to_its_sender_only(void **state)
{
	struct errand errands[4] = {adds("add", 1, 1), adds("nonsense", 2, 1), adds("add", 3, 1),
	                            adds("add-hot", 4, 1)};
	(void)state;
	strcpy(errands[2].payload, "{");
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(send_errand(&errands[i]), IBID_OK);
	come_home(errands, 4);
	assert_string_equal(errands[0].said, "executed 201");
	assert_int_equal(errands[1].code, IBID_NOT_FOUND);
	assert_int_equal(errands[2].code, IBID_INVALID);
	assert_string_equal(errands[3].said, "executed 201");
	assert_effects(2);
}

struct gate {
	pthread_mutex_t lock;
	atomic_int inside;
};

static void wait_at_gate(void *user)
{
	struct gate *gate = user;
	gate->inside++;
	pthread_mutex_lock(&gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static void a_full_pool_says_so_and_one_tenant_has_half_of_it(void **state) /* K10 */
{
	enum { SMALL = 8 };
	struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct errand errands[SMALL + 1];
	struct ibid_err err = {0};
	(void)state;
	worker_pool_free(workers);
	assert_int_equal(worker_pool_new(ibid->ledger, 1, SMALL, &workers, &err), IBID_OK);
	pthread_mutex_lock(&gate.lock);
	assert_int_equal(worker_pool_call(workers, "gate", wait_at_gate, &gate, &err), IBID_OK);
	unsigned taken[2] = {0};
	for (unsigned i = 0; i < SMALL + 1; i++) {
		errands[i] = adds("add", i, 1);
		errands[i].tenant = i < SMALL / 2 + 1 ? "t" : "other";
		enum ibid_code code = send_errand(&errands[i]);
		assert_true(code == IBID_OK || code == IBID_BUSY);
		taken[i >= SMALL / 2 + 1] += code == IBID_OK;
	}
	assert_int_equal(taken[0], SMALL / 2);
	assert_int_equal(taken[1], SMALL / 2 - 1); /* the gate is one, too */
	assert_int_equal(worker_pool_busy(workers), SMALL);
	pthread_mutex_unlock(&gate.lock);
	worker_pool_free(workers);
	workers = NULL;
	assert_int_equal(gate.inside, 1);
	assert_effects(SMALL - 1);
}

/* ---- Waking and passing on ------------------------------------------------------------------ */

enum { LIMIT_S = 60 };

struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int gathered, here;
	bool late;
};

/* Until so many are here. */
static void wait_for(struct meeting *meeting, int count)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LIMIT_S;
	while (meeting->here < count && !meeting->late)
		meeting->late = pthread_cond_timedwait(&meeting->changed, &meeting->lock, &until);
}

static struct meeting crowd;
static int expected; /* `crowd.lock` guards it */

static void meet_all(void *user)
{
	(void)user;
	pthread_mutex_lock(&crowd.lock);
	crowd.here++;
	pthread_cond_broadcast(&crowd.changed);
	wait_for(&crowd, expected);
	pthread_mutex_unlock(&crowd.lock);
}

/* Each holds its thread until all are there. */
static void every_thread_wakes_for_a_crowd(void **state)
{
	enum { TIMES = 200 };
	struct ibid_err err = {0};
	(void)state;
	crowd = (struct meeting){.lock = PTHREAD_MUTEX_INITIALIZER,
	                         .changed = PTHREAD_COND_INITIALIZER};
	expected = 0;
	for (int i = 0; i < TIMES; i++) {
		pthread_mutex_lock(&crowd.lock);
		expected += THREADS;
		pthread_mutex_unlock(&crowd.lock);
		for (int n = 0; n < THREADS; n++)
			assert_int_equal(worker_pool_call(workers, "t", meet_all, NULL, &err), IBID_OK);
		pthread_mutex_lock(&crowd.lock);
		wait_for(&crowd, expected);
		pthread_mutex_unlock(&crowd.lock);
	}
	worker_pool_free(workers);
	workers = NULL;
	assert_false(crowd.late);
	assert_int_equal(crowd.here, THREADS * TIMES);
}

static struct meeting told;

static void gather(void *user, enum ibid_code code, struct ibid_result *result,
                   const struct ibid_err *err)
{
	pthread_mutex_lock(&told.lock);
	told.gathered++;
	pthread_mutex_unlock(&told.lock);
	done(user, code, result, err);
}

static void pass_on(void *user)
{
	(void)user;
	pthread_mutex_lock(&told.lock);
	told.here = told.gathered;
	pthread_cond_signal(&told.changed);
	pthread_mutex_unlock(&told.lock);
}

/* Also where a thread that is none of the workers's led the group. */
static void outcomes_are_passed_on_whoever_led(void **state)
{
	enum { TIMES = 40, EACH = 20 };
	struct errand *own = calloc(TIMES * (EACH + 1), sizeof *own);
	struct errand *errands = calloc((size_t)TIMES * EACH, sizeof *errands);
	struct ibid_err err = {0};
	pthread_t thread;
	(void)state;
	told = (struct meeting){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	worker_pool_after(workers, pass_on, NULL);
	for (int time = 0; time < TIMES; time++) {
		struct errand *theirs = own + (size_t)time * (EACH + 1);
		for (unsigned i = 0; i < EACH; i++)
			theirs[i] = adds("add-hot", (unsigned)(10000 + time * EACH) + i, (int)(i % 5) + 1);
		assert_int_equal(pthread_create(&thread, NULL, submit_all, theirs), 0);
		for (unsigned i = 0; i < EACH; i++) {
			struct errand *errand = &errands[(unsigned)(time * EACH) + i];
			*errand = adds("add-hot", (unsigned)(time * EACH) + i, (int)(i % 5) + 1);
			assert_int_equal(
			    worker_pool_submit(workers,
			                       IBID_COMMAND(.tenant = "t", .client = "c",
			                                    .operation = errand->operation, .key = errand->key,
			                                    .payload = errand->payload),
			                       gather, errand, &err),
			    IBID_OK);
		}
		pthread_mutex_lock(&told.lock);
		wait_for(&told, (time + 1) * EACH);
		pthread_mutex_unlock(&told.lock);
		pthread_join(thread, NULL);
		assert_false(told.late);
	}
	assert_effects((int64_t)2 * TIMES * EACH);
	free(errands);
	free(own);
}

/* ---- Batches -------------------------------------------------------------------------------- */

/* The first is held until all others wait. */
static atomic_size_t awaited;
static atomic_int groups;

static void on_look(void *user, enum look look, bool after, enum ibid_code code)
{
	(void)user;
	(void)code;
	if (after || !awaited)
		return;
	groups += look == LOOK_GROUP;
	if (look == LOOK_ALONE)
		while (group_waiting(ibid->ledger->group) < awaited)
			sched_yield();
}

static struct store *wrap(void *user, struct store *store)
{
	return looks_wrap(store, on_look, user);
}

static void a_few_go_together_and_of_a_crowd_half(void **state)
{
	static const struct {
		unsigned all;
		int groups;
	} cases[] = {{9, 1}, {24, 2}};
	struct api_seams seams = {.wrap = wrap};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct errand errands[24];
		struct ibid_err err = {0};
		worker_pool_free(workers);
		ibid_close(ibid);
		ibid = bed_ibid(&bed, &seams); /* it was quiet before */
		assert_int_equal(worker_pool_new(ibid->ledger, THREADS, TASKS_MAX, &workers, &err),
		                 IBID_OK);
		groups = 0;
		awaited = cases[i].all - 1;
		for (unsigned n = 0; n < cases[i].all; n++) {
			errands[n] = adds("add", (unsigned)i * 100 + n, 1);
			assert_int_equal(send_errand(&errands[n]), IBID_OK);
		}
		come_home(errands, cases[i].all);
		awaited = 0;
		for (unsigned n = 0; n < cases[i].all; n++)
			assert_true(ended_well(&errands[n]));
		assert_int_equal(groups, cases[i].groups);
	}
	assert_effects(9 + 24);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    TEST(many_commands_of_every_kind_have_one_effect_each),
	    TEST(twins_are_one),
	    TEST(who_waits_with_a_thread_and_who_does_not_share),
	    TEST(bad_input_is_told_to_its_sender_only),
	    TEST(a_full_pool_says_so_and_one_tenant_has_half_of_it),
	    TEST(every_thread_wakes_for_a_crowd),
	    TEST(outcomes_are_passed_on_whoever_led),
	    TEST(a_few_go_together_and_of_a_crowd_half),
	};
	bed_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
