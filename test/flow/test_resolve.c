/* SPDX-License-Identifier: Apache-2.0 */
/* test_resolve.c -- staged commands whose outcome nobody knew, looked at again; and those that were
 * refused in the words of who was asked. */
#include "command/staged.h"
#include "retention/retain.h"
#include "support/bed.h"
#include "support/ended.h"
#include "support/fault.h"

#include <pthread.h>
#include <signal.h>
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
                                struct ibid_staged **staged, struct ibid_result **result)
{
	return ibid_stage(on,
	                  IBID_COMMAND(.tenant = "t", .client = "c", .actor = "a",
	                               .operation = operation, .key = key, .payload = payload),
	                  staged, result, NULL);
}

static struct ibid_staged *stage(struct ibid *on, const char *operation, const char *key)
{
	struct ibid_staged *staged = NULL;
	struct ibid_result *result = NULL;
	assert_int_equal(try_stage(on, operation, key, &staged, &result), IBID_OK);
	assert_non_null(staged);
	return staged;
}

static void expect_stage(const char *operation, const char *key, const char *expected)
{
	struct ibid_staged *staged = NULL;
	struct ibid_result *result = NULL;
	assert_int_equal(try_stage(ibid, operation, key, &staged, &result), IBID_OK);
	assert_string_equal(staged ? "staged" : bed_say(result), expected);
	ibid_staged_free(staged);
	ibid_result_free(result);
}

static const char *id_of(const struct ibid_staged *staged)
{
	return ibid_work_command_id(ibid_staged_work(staged));
}

/* A command whose worker does not know. `charge`: what is in the books of it; NULL: nothing. */
static struct ibid_staged *lose(const char *operation, const char *key, const char *charge)
{
	struct ibid_staged *staged = stage(ibid, operation, key);
	struct ibid_result *result = NULL;
	if (charge)
		bed_exec(&bed, "insert into charge (command_id, state) values ('%s', '%s')", id_of(staged),
		         charge);
	assert_int_equal(ibid_staged_unknown(staged, "no answer came", &result, NULL), IBID_OK);
	assert_string_equal(bed_say(result), "unknown 500");
	ibid_result_free(result);
	return staged;
}

static enum ibid_code conclude(struct ibid_work *work, void *user)
{
	(void)user;
	ibid_resource(work, "charge", ibid_work_command_id(work));
	return ibid_answer(work, 201, "{\"charged\":12.5}");
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

static struct told look_again(struct ibid *on, bool dry_run)
{
	struct told told = {0};
	struct ibid_err err = {0};
	size_t count = 0;
	if (ibid_recover(
	        on, IBID_RECOVERY(.unknown = true, .dry_run = dry_run, .tell = hear, .user = &told),
	        &count, &err))
		fail_msg("recover: %s", err.text);
	assert_int_equal(count, told.ended);
	return told;
}

static int64_t in_state(const char *state)
{
	return bed_number(&bed, "select count(*) from ibid.command where state = '%s'", state);
}

static int64_t audits(void)
{
	return bed_number(&bed, "select count(*) from ibid.audit");
}

static int64_t open_items(void)
{
	return bed_number(&bed, "select count(*) from ibid.exception where state = 'OPEN'");
}

static int64_t resolved_items(const char *resolution)
{
	return bed_number(&bed,
	                  "select count(*) from ibid.exception where state = 'RESOLVED' and "
	                  "resolved_by = 'recovery' and note like 'found by looking%%' and %s and "
	                  "resolution = '%s'",
	                  bed.kind == BED_SQLITE ? "resolved_us > 0" : "resolved_at is not null",
	                  resolution);
}

static void end_leases(void)
{
	if (bed.kind == BED_SQLITE)
		bed_exec(&bed, "update ibid.command set lease_until_us = 1 where lease_until_us > 0");
	else
		bed_exec(&bed,
		         "update ibid.command set lease_until = 'epoch' where lease_until is not null");
}

/* ---- A watch on the store ------------------------------------------------------------------- */

/* Counts what is written, and does something once after a statement. */
struct watch {
	size_t writes;
	const char *after;
	void (*act)(void);
	struct hook hook;
};

static bool is_write(const char *statement)
{
	static const char *const ends[] = {"commit", "_put", "_insert", "_replace", "_resolve"};
	size_t size = strlen(statement);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (size >= strlen(ends[i]) && strcmp(statement + size - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

static bool watch_statement(void *user, const struct hook_point *point)
{
	struct watch *watch = user;
	if (point->kind != HOOK_AFTER)
		return false;
	watch->writes += is_write(point->statement);
	if (!watch->after || strcmp(point->statement, watch->after) != 0)
		return false;
	watch->after = NULL;
	watch->act();
	return false;
}

static struct store *wrap_watch(void *user, struct store *store)
{
	struct watch *watch = user;
	watch->hook = (struct hook){watch_statement, user};
	store->hook = &watch->hook;
	return store;
}

static struct ibid *watched(struct watch *watch)
{
	struct api_seams seams = {.wrap = wrap_watch, .user = watch};
	struct ibid *other = bed_ibid(&bed, &seams);
	watch->writes = 0;
	return other;
}

/* ---- Looking by a script -------------------------------------------------------------------- */

static void a_script_that_finds_out_ends_what_was_unknown(void **state) /* B06 E04 */
{
	(void)state;
	static const struct {
		const char *charge, *said, *after, *resolution;
	} cases[] = {
	    {"done", "executed 201", "replayed executed 201", "confirmed-executed"},
	    {"declined", "rejected 409", "replayed rejected 409", "confirmed-not-executed"},
	    {"not sent", "failed 500", "staged", "confirmed-not-executed"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ibid_staged *staged = lose("charge", cases[i].charge, cases[i].charge);
		int64_t resolved = resolved_items(cases[i].resolution);
		assert_int_equal(open_items(), 1);
		struct told told = look_again(ibid, true);
		assert_int_equal(told.left, 1);
		assert_int_equal(in_state("UNKNOWN"), 1); /* only told */
		told = look_again(ibid, false);
		assert_string_equal(told.said, cases[i].said);
		assert_string_equal(told.id, id_of(staged));
		assert_int_equal(told.ended, 1);
		assert_int_equal(open_items(), 0);
		assert_int_equal(resolved_items(cases[i].resolution), resolved + 1);
		expect_stage("charge", cases[i].charge, cases[i].after);
		ibid_staged_free(staged);
	}
	assert_int_equal(audits(), 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.audit where outcome = 'executed' "
	                                  "and client = 'c' and actor = 'a'"),
	                 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event"), 1);
	assert_int_equal(look_again(ibid, false).ended, 0);
}

static void what_is_not_found_out_stays_as_it_was(void **state) /* I4 */
{
	(void)state;
	struct watch watch = {0};
	struct ibid *other = watched(&watch);
	struct ibid_staged *staged = lose("charge", "k-1", NULL);
	for (int i = 0; i < 2; i++) {
		struct told told = look_again(other, false);
		assert_int_equal(told.ended, 0);
		assert_int_equal(told.left, 1);
		assert_non_null(strstr(told.text, "still unknown: "));
		assert_non_null(strstr(told.text, "the recovery script found no answer"));
	}
	bed_exec(&bed, "alter table charge rename to charge_away");
	struct told told = look_again(other, false);
	assert_int_equal(told.left, 1);
	assert_non_null(strstr(told.text, "charge"));
	assert_non_null(strstr(told.text, "it is still unknown"));
	bed_exec(&bed, "alter table charge_away rename to charge");
	assert_int_equal(watch.writes, 0);
	assert_int_equal(in_state("UNKNOWN"), 1);
	assert_int_equal(open_items(), 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.exception"), 1);
	expect_stage("charge", "k-1", "unknown 500");
	ibid_staged_free(staged);
	ibid_close(other);
}

static void nobody_looks_who_was_not_told_to_or_can_not(void **state) /* B06 */
{
	(void)state;
	size_t count = 0;
	struct told told = {0};
	ibid_staged_free(lose("charge", "script", "done"));
	ibid_staged_free(lose("charge-human", "human", NULL));
	ibid_staged_free(lose("charge-inquiry", "no inquirer", NULL));
	assert_int_equal(ibid_recover(ibid, IBID_RECOVERY(.tell = hear, .user = &told), &count, NULL),
	                 IBID_OK);
	/* What a program says that was built before there was the member. */
	struct ibid_recovery older = {.size = offsetof(struct ibid_recovery, unknown),
	                              .tell = hear,
	                              .user = &told,
	                              .unknown = true};
	assert_int_equal(ibid_recover(ibid, &older, &count, NULL), IBID_OK);
	assert_int_equal(told.ended + told.left, 0);
	told = look_again(ibid, false);
	assert_int_equal(told.ended, 1);
	assert_int_equal(told.left, 0);
	assert_int_equal(in_state("UNKNOWN"), 2);
}

static void what_was_never_staged_is_not_looked_at(void **state)
{
	(void)state;
	ibid_staged_free(lose("charge", "k-1", "done"));
	bed_exec(&bed, "update ibid.command set lease_token = null");
	struct told told = look_again(ibid, false);
	assert_int_equal(told.ended + told.left, 0);
}

static void a_worker_that_did_not_know_can_not_change_its_mind(void **state) /* I6 */
{
	(void)state;
	struct ibid_staged *staged = lose("charge", "k-1", "done");
	struct ibid_result *result = NULL;
	assert_int_equal(ibid_staged_finish(staged, conclude, NULL, &result, NULL), IBID_OK);
	assert_string_equal(bed_say(result), "replayed unknown 500");
	ibid_result_free(result);
	assert_int_equal(ibid_staged_fail(staged, true, "x", &result, NULL), IBID_OK);
	assert_string_equal(bed_say(result), "replayed unknown 500");
	ibid_result_free(result);
	assert_int_equal(in_state("UNKNOWN"), 1);
	assert_int_equal(open_items(), 1);
	assert_int_equal(look_again(ibid, false).ended, 1);
	assert_int_equal(ibid_staged_finish(staged, conclude, NULL, &result, NULL), IBID_OK);
	assert_string_equal(bed_say(result), "replayed executed 201");
	ibid_result_free(result);
	assert_int_equal(audits(), 1);
	ibid_staged_free(staged);
}

static void what_a_recovery_made_unknown_is_asked_about_by_the_next_one(void **state)
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	end_leases();
	struct told told = look_again(ibid, false);
	assert_string_equal(told.said, "unknown 500");
	assert_int_equal(told.ended, 1);
	assert_int_equal(told.left, 0); /* not twice in one go */
	bed_exec(&bed, "insert into charge (command_id, state) values ('%s', 'done')", id_of(staged));
	assert_string_equal(look_again(ibid, false).said, "executed 201");
	assert_int_equal(resolved_items("confirmed-executed"), 1);
	ibid_staged_free(staged);
}

/* ---- Looking by an inquiry ------------------------------------------------------------------ */

struct partner {
	const char *answer;
	int64_t since_us;
	int asked;
};

static enum ibid_code inquire(struct ibid_staged *staged, void *user)
{
	struct partner *partner = user;
	struct ibid_result *result = NULL;
	enum ibid_code code = IBID_OK;
	partner->asked++;
	partner->since_us = ibid_staged_since_us(staged);
	assert_int_equal(ibid_staged_renew(staged, NULL), IBID_OK);
	if (strcmp(partner->answer, "done") == 0)
		code = ibid_staged_finish(staged, conclude, NULL, &result, NULL);
	else if (strcmp(partner->answer, "not done") == 0)
		code = ibid_staged_fail(staged, true, "the partner does not know it", &result, NULL);
	else if (strcmp(partner->answer, "refused") == 0)
		code = staged_refuse(staged, 422, "UPSTREAM_REFUSED", NULL, "{\"b\":1, \"a\":2}", &result,
		                     NULL);
	else if (strcmp(partner->answer, "too early") == 0)
		code = ibid_staged_unknown(staged, "it is too early to tell", &result, NULL);
	else if (strcmp(partner->answer, "away") == 0)
		code = IBID_UNAVAILABLE;
	ibid_result_free(result);
	return code;
}

static void an_inquiry_that_finds_out_ends_what_was_unknown(void **state) /* E04 */
{
	(void)state;
	static const struct {
		const char *answer, *said, *after, *resolution;
	} cases[] = {
	    {"done", "replayed executed 201", "replayed executed 201", "confirmed-executed"},
	    {"not done", "replayed failed 500", "staged", "confirmed-not-executed"},
	    {"refused", "replayed rejected 422", "replayed rejected 422", "confirmed-not-executed"},
	};
	struct partner partner = {0};
	assert_int_equal(ibid_handle_inquiry(ibid, "charge-inquiry", inquire, &partner, NULL), IBID_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ibid_staged *staged = lose("charge-inquiry", cases[i].answer, NULL);
		int64_t resolved = resolved_items(cases[i].resolution);
		partner.answer = cases[i].answer;
		struct told told = look_again(ibid, false);
		assert_string_equal(told.said, cases[i].said);
		assert_int_equal(told.ended, 1);
		assert_int_equal(resolved_items(cases[i].resolution), resolved + 1);
		assert_int_equal(open_items(), 0);
		expect_stage("charge-inquiry", cases[i].answer, cases[i].after);
		ibid_staged_free(staged);
	}
	assert_int_equal(partner.asked, 3);
	assert_int_equal(audits(), 1);
}

static void an_inquiry_without_an_answer_changes_nothing(void **state) /* I4 */
{
	(void)state;
	static const struct {
		const char *answer, *text;
	} cases[] = {
	    {"silence", "the inquiry gave no answer"},
	    {"too early", "still unknown: it is too early to tell"},
	    {"away", "could not be made"},
	};
	struct partner partner = {0};
	struct watch watch = {0};
	struct ibid *other = watched(&watch);
	assert_int_equal(ibid_handle_inquiry(other, "charge-inquiry", inquire, &partner, NULL),
	                 IBID_OK);
	ibid_staged_free(lose("charge-inquiry", "k-1", NULL));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		partner.answer = cases[i].answer;
		struct told told = look_again(other, false);
		assert_int_equal(told.ended, 0);
		assert_int_equal(told.left, 1);
		assert_non_null(strstr(told.text, cases[i].text));
	}
	assert_int_equal(watch.writes, 0);
	assert_int_equal(partner.asked, 3);
	assert_int_equal(in_state("UNKNOWN"), 1);
	assert_int_equal(open_items(), 1);
	ibid_close(other);
}

static void an_inquiry_is_told_since_when_the_outcome_is_open(void **state)
{
	(void)state;
	struct partner partner = {.answer = "silence"};
	assert_int_equal(ibid_handle_inquiry(ibid, "charge-inquiry", inquire, &partner, NULL), IBID_OK);
	struct ibid_staged *staged = stage(ibid, "charge-inquiry", "k-1");
	assert_int_equal(ibid_staged_since_us(staged), 0);
	bool lite = bed.kind == BED_SQLITE;
	/* Not before the row was there, whatever the lease says. */
	end_leases();
	(void)look_again(ibid, false);
	assert_true(partner.since_us ==
	            bed_number(&bed, lite ? "select created_us from ibid.command"
	                                  : "select (extract(epoch from created_at) * 1000000)::bigint "
	                                    "from ibid.command"));
	(void)look_again(ibid, false);
	assert_int_equal(partner.asked, 2);
	assert_true(partner.since_us ==
	            bed_number(&bed, lite
	                                 ? "select finished_us from ibid.command"
	                                 : "select (extract(epoch from finished_at) * 1000000)::bigint "
	                                   "from ibid.command"));
	ibid_staged_free(staged);
}

/* ---- Pace ----------------------------------------------------------------------------------- */

struct pace_of_two {
	struct told told; /* first: `user` is of both */
	int asked;
	int64_t since_us;
};

static bool every_second(void *user, const char *tenant, const char *operation,
                         const char *command_id, int64_t token, int64_t since_us)
{
	struct pace_of_two *advance = user;
	assert_int_not_equal(token, 0);
	assert_string_equal(tenant, "t");
	assert_string_equal(operation, "charge");
	assert_int_equal(strlen(command_id), 36);
	assert_true(since_us > advance->since_us); /* the oldest first */
	advance->since_us = since_us;
	return advance->asked++ % 2 != 0;
}

static void the_caller_says_which_are_asked_about_and_the_limit_counts_those(void **state)
{
	(void)state;
	enum { COMMANDS = 220 }; /* more than one page of the listing */
	struct pace_of_two advance = {0};
	size_t count = 0;
	for (int i = 0; i < 10; i++) {
		char key[32];
		snprintf(key, sizeof key, "k-%d", i);
		ibid_staged_free(lose("charge", key, "done"));
	}
	assert_int_equal(ibid_recover(ibid,
	                              IBID_RECOVERY(.unknown = true, .limit = 3, .tell = hear,
	                                            .user = &advance, .wanted = every_second),
	                              &count, NULL),
	                 IBID_OK);
	assert_int_equal(count, 3);
	assert_int_equal(advance.told.ended, 3);
	assert_int_equal(advance.asked, 6);
	assert_int_equal(in_state("UNKNOWN"), 7);
	for (int i = 10; i < COMMANDS; i++) {
		char key[32];
		snprintf(key, sizeof key, "k-%d", i);
		ibid_staged_free(lose("charge", key, i == COMMANDS - 1 ? "done" : NULL));
	}
	advance = (struct pace_of_two){0};
	assert_int_equal(ibid_recover(ibid,
	                              IBID_RECOVERY(.unknown = true, .tenant = "other", .tell = hear,
	                                            .user = &advance, .wanted = every_second),
	                              &count, NULL),
	                 IBID_OK);
	assert_int_equal(advance.asked, 0);
	assert_int_equal(
	    ibid_recover(ibid,
	                 IBID_RECOVERY(.unknown = true, .limit = 1000, .tell = hear, .user = &advance),
	                 &count, NULL),
	    IBID_OK);
	assert_int_equal(count, 8); /* the one on the last page, too */
	assert_int_equal(advance.told.left, COMMANDS - 11);
}

/* ---- Races, kills, faults ------------------------------------------------------------------- */

static void look_meanwhile(void)
{
	assert_int_equal(look_again(ibid, false).ended, 1);
}

static void who_finds_out_second_is_fenced_and_says_nothing(void **state) /* I6 */
{
	(void)state;
	struct watch watch = {.after = "command_list_unknown", .act = look_meanwhile};
	struct ibid *other = watched(&watch);
	ibid_staged_free(lose("charge", "k-1", "done"));
	struct told told = look_again(other, false);
	assert_null(watch.after); /* somebody did look meanwhile */
	assert_int_equal(told.ended + told.left, 0);
	assert_int_equal(watch.writes, 0);
	assert_int_equal(audits(), 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event"), 1);
	ibid_close(other);
}

/* While the first one asks, another one is told that it was not done, and the key is sent again. */
struct slow {
	struct ibid *other;
	const char *key;
	struct ibid_staged *second;
	enum ibid_code codes[3];
	bool swallow;
};

static enum ibid_code inquire_slowly(struct ibid_staged *staged, void *user)
{
	struct slow *slow = user;
	struct ibid_result *result = NULL;
	assert_string_equal(look_again(slow->other, false).said, "replayed failed 500");
	slow->second = stage(slow->other, "charge-inquiry", slow->key);
	slow->codes[0] = ibid_staged_fail(staged, true, "the partner does not know it", &result, NULL);
	slow->codes[1] = ibid_staged_finish(staged, conclude, NULL, &result, NULL);
	slow->codes[2] = ibid_staged_unknown(staged, "x", &result, NULL);
	assert_null(result);
	return slow->swallow ? IBID_OK : slow->codes[0];
}

static void a_slow_inquiry_can_not_touch_the_next_run(void **state) /* I6 */
{
	(void)state;
	for (int swallow = 0; swallow < 2; swallow++) {
		struct partner partner = {.answer = "not done"};
		struct slow slow = {
		    .other = bed_ibid(&bed, NULL), .key = swallow ? "k-2" : "k-1", .swallow = swallow};
		assert_int_equal(ibid_handle_inquiry(slow.other, "charge-inquiry", inquire, &partner, NULL),
		                 IBID_OK);
		assert_int_equal(ibid_handle_inquiry(ibid, "charge-inquiry", inquire_slowly, &slow, NULL),
		                 IBID_OK);
		ibid_staged_free(lose("charge-inquiry", slow.key, NULL));
		struct told told = look_again(ibid, false);
		assert_int_equal(told.ended + told.left, 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(slow.codes[i], IBID_FENCED);
		assert_int_equal(in_state("IN_PROGRESS"), 1);
		struct ibid_result *result = NULL;
		assert_int_equal(ibid_staged_finish(slow.second, conclude, NULL, &result, NULL), IBID_OK);
		assert_string_equal(bed_say(result), "executed 201");
		ibid_result_free(result);
		ibid_staged_free(slow.second);
		ibid_close(slow.other);
	}
	assert_int_equal(audits(), 2);
}

struct resolver {
	struct ibid *ibid;
	pthread_barrier_t *start;
	size_t count;
	enum ibid_code code;
};

static void *resolve_in_thread(void *user)
{
	struct resolver *resolver = user;
	pthread_barrier_wait(resolver->start);
	resolver->code = ibid_recover(resolver->ibid, IBID_RECOVERY(.unknown = true), &resolver->count,
	                              NULL);
	return NULL;
}

static void two_look_at_once_and_each_command_is_ended_by_one(void **state) /* I6 */
{
	(void)state;
	enum { COMMANDS = 24 };
	struct resolver resolvers[2];
	pthread_t threads[2];
	pthread_barrier_t start;
	for (int i = 0; i < COMMANDS; i++) {
		char key[32];
		snprintf(key, sizeof key, "k-%d", i);
		ibid_staged_free(lose("charge", key, i % 3 ? "done" : "not sent"));
	}
	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < 2; i++) {
		resolvers[i] = (struct resolver){.ibid = bed_ibid(&bed, NULL), .start = &start};
		pthread_create(&threads[i], NULL, resolve_in_thread, &resolvers[i]);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(resolvers[i].code, IBID_OK);
		ibid_close(resolvers[i].ibid);
	}
	pthread_barrier_destroy(&start);
	assert_int_equal(resolvers[0].count + resolvers[1].count, COMMANDS);
	assert_int_equal(in_state("COMPLETED"), COMMANDS * 2 / 3);
	assert_int_equal(in_state("FAILED"), COMMANDS / 3);
	assert_int_equal(audits(), COMMANDS * 2 / 3);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event"), COMMANDS * 2 / 3);
	assert_int_equal(open_items(), 0);
}

static unsigned points_of_opening(enum fault_kind kind)
{
	struct fault fault = {.kind = kind};
	ibid_close(bed_ibid(&bed, &(struct api_seams){.wrap = fault_set, .user = &fault}));
	return fault.points;
}

/* True: SIGKILL ended it. One that came to its end says so itself: under valgrind its exit code
 * speaks of memory that its parent holds. */
static bool look_again_and_die(struct fault *at)
{
	int status, said[2];
	char end = 0;
	assert_int_equal(pipe(said), 0);
	int64_t start = bed_mark(&bed);
	pid_t child = fork();
	if (child == 0) {
		struct api_seams seams = {.wrap = fault_set, .user = at};
		struct ibid *own = bed_ibid(&bed, &seams);
		size_t count;
		(void)!ibid_recover(own, IBID_RECOVERY(.unknown = true), &count, NULL);
		ibid_close(own);
		(void)!write(said[1], "e", 1);
		_exit(0);
	}
	close(said[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	bed_settle_since(&bed, start);
	bool ended = read(said[0], &end, 1) == 1 && end == 'e';
	close(said[0]);
	assert_true(ended || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
	return !ended;
}

static void a_look_killed_at_any_statement_is_repeated_and_ends_it_once(void **state) /* I1 */
{
	(void)state;
	unsigned opening = points_of_opening(FAULT_KILL), n = 1;
	int64_t ended = 0;
	fault_path("look");
	for (bool dead = true; dead; n++) {
		char key[32];
		snprintf(key, sizeof key, "k-%u", n);
		struct fault at = {.kind = FAULT_KILL, .at = opening + n};
		ibid_staged_free(lose("charge", key, "done"));
		dead = look_again_and_die(&at);
		/* All of it, or nothing. */
		assert_int_equal(open_items(), in_state("UNKNOWN"));
		assert_int_equal(resolved_items("confirmed-executed"), in_state("COMPLETED"));
		assert_int_equal(audits(), in_state("COMPLETED"));
		(void)look_again(ibid, false);
		expect_stage("charge", key, "replayed executed 201");
		ended++;
		assert_int_equal(audits(), ended);
		assert_int_equal(bed_number(&bed, "select count(*) from ibid.event"), ended);
		assert_int_equal(resolved_items("confirmed-executed"), ended);
	}
	assert_true(n > 6); /* the kills have met all of it */
}

static void a_look_that_fails_at_any_statement_tells_what_is_true(void **state) /* I7 */
{
	(void)state;
	int64_t done = 0;
	fault_path("look");
	for (int kind = FAULT_FAIL; kind <= FAULT_LOSE; kind++) {
		unsigned opening = points_of_opening((enum fault_kind)kind);
		bool fired = true;
		for (unsigned n = 1; fired; n++) {
			char key[32];
			struct told told = {0};
			size_t count = 0;
			struct fault at = {.kind = (enum fault_kind)kind, .at = opening + n};
			struct api_seams seams = {.wrap = fault_set, .user = &at};
			struct ibid *own = bed_ibid(&bed, &seams);
			snprintf(key, sizeof key, "k-%d-%u", kind, n);
			ibid_staged_free(lose("charge", key, "done"));
			(void)!ibid_recover(own, IBID_RECOVERY(.unknown = true, .tell = hear, .user = &told),
			                    &count, NULL);
			fired = at.fired;
			if (told.ended) {
				assert_string_equal(told.said, "executed 201");
				assert_int_equal(in_state("UNKNOWN"), 0);
			}
			assert_int_equal(open_items(), in_state("UNKNOWN"));
			(void)look_again(ibid, false);
			expect_stage("charge", key, "replayed executed 201");
			done++;
			assert_int_equal(audits(), done);
			assert_int_equal(resolved_items("confirmed-executed"), done);
			ibid_close(own);
		}
	}
}

static void a_lost_commit_is_not_taken_for_that_of_another(void **state) /* I7 I6 */
{
	(void)state;
	struct ibid *own = bed_ibid(&bed, &(struct api_seams){.wrap = ended_wrap});
	ibid_staged_free(lose("charge", "k-1", "done"));
	lost_meanwhile = look_meanwhile;
	struct told told = look_again(own, false);
	assert_null(lost_meanwhile);
	assert_int_equal(told.ended + told.left, 0); /* the other one has told it */
	assert_int_equal(in_state("COMPLETED"), 1);
	assert_int_equal(audits(), 1);
	assert_int_equal(resolved_items("confirmed-executed"), 1);
	ibid_close(own);
}

/* ---- Refused in its own words --------------------------------------------------------------- */

static const char own_words[] =
    "{ \"b\" : 1.50,\"a\":[1,2 ],  \"text\":\"d\xC3\xA9j\xC3\xA0 \\u00e9\" }";

static struct ibid_result *again(const char *operation, const char *key)
{
	return bed_submit(ibid, operation, key, payload);
}

static void refuse(const char *operation, const char *key)
{
	struct ibid_staged *staged = stage(ibid, operation, key);
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (staged_refuse(staged, 422, "UPSTREAM_REFUSED", "the card is blocked", own_words, &result,
	                  &err))
		fail_msg("refuse: %s", err.text);
	assert_string_equal(bed_say(result), "rejected 422");
	assert_string_equal(ibid_result_body(result), own_words);
	assert_int_equal(ibid_result_body_size(result), strlen(own_words));
	assert_string_equal(ibid_result_reason(result), "UPSTREAM_REFUSED");
	assert_string_equal(ibid_result_text(result), "the card is blocked");
	assert_true(result->own_body);
	ibid_result_free(result);
	ibid_staged_free(staged);
}

static void a_refusal_is_replayed_byte_for_byte(void **state) /* B03 B08 */
{
	(void)state;
	refuse("charge", "k-1");
	struct ibid_result *result = again("charge", "k-1");
	assert_string_equal(bed_say(result), "replayed rejected 422");
	assert_string_equal(ibid_result_body(result), own_words);
	assert_string_equal(ibid_result_reason(result), "UPSTREAM_REFUSED");
	assert_true(result->own_body);
	ibid_result_free(result);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.answer"), 1);
	assert_int_equal(audits(), 0);
}

static void a_refusal_is_final_and_kept_as_the_contract_says(void **state) /* B08 */
{
	(void)state;
	refuse("charge-brief", "k-1"); /* failures.business: retry */
	struct ibid_result *result = again("charge-brief", "k-1");
	assert_string_equal(bed_say(result), "replayed rejected 422");
	assert_false(result->own_body);
	assert_non_null(strstr(ibid_result_body(result), "\"/problems/rejected\""));
	assert_non_null(strstr(ibid_result_body(result), "UPSTREAM_REFUSED"));
	ibid_result_free(result);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.answer"), 0);
}

static void a_refusal_loses_its_words_by_erasure(void **state) /* K11 */
{
	(void)state;
	char *erased = NULL;
	refuse("charge", "k-1");
	struct ibid_result *result = again("charge", "k-1");
	assert_int_equal(
	    ibid_erase(ibid,
	               IBID_ERASURE(.tenant = "t", .command_id = ibid_result_command_id(result),
	                            .by = "ann", .reason = "asked for"),
	               &erased, NULL),
	    IBID_OK);
	assert_non_null(strstr(erased, "\"bodies\":1"));
	ibid_free(erased);
	ibid_result_free(result);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.answer"), 0);
	result = again("charge", "k-1");
	assert_string_equal(bed_say(result), "replayed rejected 422");
	assert_null(strstr(ibid_result_body(result), "blocked"));
	assert_null(strstr(ibid_result_body(result), "1.50"));
	assert_non_null(strstr(ibid_result_body(result), "\"/problems/rejected\""));
	ibid_result_free(result);
}

static void a_refusal_loses_its_words_with_its_key(void **state) /* B10 */
{
	(void)state;
	struct env_virtual later;
	struct retention_count count = {0};
	struct retain_options options = {.batch = 10};
	struct ibid_err err = {0};
	bool finished = false;
	refuse("charge", "k-1");
	env_virtual_init(&later, env_wall_us(env_system()) + INT64_C(40) * 86400 * 1000000, 1);
	if (ledger_retain(ibid->ledger->store, ibid->ledger->contracts, &later.env, &options, &count,
	                  &finished, &err))
		fail_msg("retain: %s", err.text);
	assert_true(finished);
	assert_int_equal(count.answers, 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.answer"), 0);
	struct api_seams seams = {.env = &later.env};
	struct ibid *other = bed_ibid(&bed, &seams);
	bed_expect(other, "charge", "k-1", payload, "expired 410");
	ibid_close(other);
}

static void an_answer_of_a_worker_is_kept_byte_for_byte(void **state) /* B03 */
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (staged_answer(staged, 201, own_words, &result, &err))
		fail_msg("answer: %s", err.text);
	assert_string_equal(bed_say(result), "executed 201");
	assert_string_equal(ibid_result_body(result), own_words);
	ibid_result_free(result);
	ibid_staged_free(staged);
	result = again("charge", "k-1");
	assert_string_equal(bed_say(result), "replayed executed 201");
	assert_string_equal(ibid_result_body(result), own_words);
	ibid_result_free(result);
	assert_int_equal(audits(), 1);
}

static void a_failure_and_what_is_unknown_have_their_own_reason(void **state)
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	if (staged_fail(staged, 502, "UPSTREAM_UNREACHABLE", "no route", &result, &err))
		fail_msg("fail: %s", err.text);
	assert_string_equal(bed_say(result), "failed 502");
	assert_string_equal(ibid_result_reason(result), "UPSTREAM_UNREACHABLE");
	assert_true(ibid_result_retry_after_ms(result) > 0);
	ibid_result_free(result);
	ibid_staged_free(staged);
	staged = stage(ibid, "charge", "k-1"); /* again */
	if (staged_unknown(staged, "UPSTREAM_SILENT", "no answer in 30s", NULL, &result, &err))
		fail_msg("unknown: %s", err.text);
	assert_string_equal(bed_say(result), "unknown 500");
	ibid_result_free(result);
	ibid_staged_free(staged);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command where state = 'UNKNOWN' "
	                                  "and reason = 'UPSTREAM_SILENT'"),
	                 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.exception where "
	                                  "reason = 'UPSTREAM_SILENT' and state = 'OPEN'"),
	                 1);
}

static void what_can_not_be_kept_is_refused_and_the_lease_goes_on(void **state)
{
	(void)state;
	struct ibid_staged *staged = stage(ibid, "charge", "k-1");
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	assert_int_equal(staged_refuse(staged, 399, "NO", NULL, NULL, &result, &err), IBID_MISUSE);
	assert_int_equal(staged_refuse(staged, 600, "NO", NULL, NULL, &result, &err), IBID_MISUSE);
	assert_int_equal(staged_refuse(staged, 422, "no", NULL, NULL, &result, &err), IBID_MISUSE);
	assert_int_equal(staged_refuse(staged, 422, "", NULL, NULL, &result, &err), IBID_MISUSE);
	assert_int_equal(staged_refuse(staged, 422, "NO", NULL, "<html>", &result, &err), IBID_MISUSE);
	assert_non_null(strstr(err.text, "JSON"));
	assert_int_equal(staged_fail(staged, 200, "NO", NULL, &result, &err), IBID_MISUSE);
	assert_int_equal(staged_unknown(staged, "so what", NULL, NULL, &result, &err), IBID_MISUSE);
	assert_int_equal(staged_answer(staged, 404, NULL, &result, &err), IBID_MISUSE);
	assert_int_equal(staged_answer(staged, 200, "{", &result, &err), IBID_MISUSE);
	assert_null(result);
	assert_int_equal(in_state("IN_PROGRESS"), 1);
	if (staged_refuse(staged, 503, "NO", NULL, NULL, &result, &err))
		fail_msg("refuse: %s", err.text);
	assert_string_equal(bed_say(result), "rejected 503");
	ibid_result_free(result);
	ibid_staged_free(staged);
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(a_script_that_finds_out_ends_what_was_unknown),
	    TEST(what_is_not_found_out_stays_as_it_was),
	    TEST(nobody_looks_who_was_not_told_to_or_can_not),
	    TEST(what_was_never_staged_is_not_looked_at),
	    TEST(a_worker_that_did_not_know_can_not_change_its_mind),
	    TEST(what_a_recovery_made_unknown_is_asked_about_by_the_next_one),
	    TEST(an_inquiry_that_finds_out_ends_what_was_unknown),
	    TEST(an_inquiry_without_an_answer_changes_nothing),
	    TEST(an_inquiry_is_told_since_when_the_outcome_is_open),
	    TEST(the_caller_says_which_are_asked_about_and_the_limit_counts_those),
	    TEST(who_finds_out_second_is_fenced_and_says_nothing),
	    TEST(a_slow_inquiry_can_not_touch_the_next_run),
	    TEST(two_look_at_once_and_each_command_is_ended_by_one),
	    TEST(a_look_killed_at_any_statement_is_repeated_and_ends_it_once),
	    TEST(a_look_that_fails_at_any_statement_tells_what_is_true),
	    TEST(a_lost_commit_is_not_taken_for_that_of_another),
	    TEST(a_refusal_is_replayed_byte_for_byte),
	    TEST(a_refusal_is_final_and_kept_as_the_contract_says),
	    TEST(a_refusal_loses_its_words_by_erasure),
	    TEST(a_refusal_loses_its_words_with_its_key),
	    TEST(an_answer_of_a_worker_is_kept_byte_for_byte),
	    TEST(a_failure_and_what_is_unknown_have_their_own_reason),
	    TEST(what_can_not_be_kept_is_refused_and_the_lease_goes_on),
	};
	return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
