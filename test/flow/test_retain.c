/* SPDX-License-Identifier: Apache-2.0 */
/* test_retain.c -- what becomes of commands after their time, through the public surface, on both
 * stores. The clock is moved, never waited for. */
#include "support/bed.h"
#include "support/fault.h"

#include "command/duplicates.h"
#include "retention/retain.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/contracts"

static const int64_t DAY_US = 86400000000, NOW_US = 1790000000000000;

static struct bed bed;
static struct ibid *ibid;
static struct env_virtual clock_env;

/* Two kinds of payment that may run again, one with its body kept, one by the short way; and one of
 * which each duplicate is kept. */
static void write_contracts(void)
{
	static const char form[] = "command: %s\n"
	                           "version: 1\n"
	                           "fact: a payment\n"
	                           "%s\n"
	                           "fields:\n"
	                           "  /reference: { type: text, required: true, max: 40 }\n"
	                           "  /amount: { type: decimal, required: true, above: 0, scale: 2 }\n"
	                           "  /fail: { type: text }\n"
	                           "answer: { store: %s }\n"
	                           "emits: [Paid]\n"
	                           "unique:\n"
	                           "  payment_reference: { on_duplicate: link, find: pay-find.sql }\n"
	                           "handler: { sql: pay.$store.sql }\n";
	char text[1024];
	snprintf(text, sizeof text, form, "again-full", "key: { retain: 10d, after_expiry: run-again }",
	         "full");
	bed_write(&bed, "again-full.yaml", text);
	snprintf(text, sizeof text, form, "again-brief",
	         "key: { retain: 10d, after_expiry: run-again }", "reference");
	bed_write(&bed, "again-brief.yaml", text);
	snprintf(text, sizeof text, form, "pay-each", "duplicates: { evidence: each }", "reference");
	bed_write(&bed, "pay-each.yaml", text);
}

static int set_up(void **state)
{
	(void)state;
	bed_open_empty(&bed, FIXTURE);
	write_contracts();
	bed_init(&bed);
	env_virtual_init(&clock_env, NOW_US, 7);
	ibid = bed_ibid(&bed, &(struct api_seams){.env = &clock_env.env});
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ibid_close(ibid);
	bed_close(&bed);
	return 0;
}

static int64_t rows(const char *table)
{
	return bed_number(&bed, "select count(*) from %s", table);
}

static void assert_rows(int64_t payments, int64_t events, int64_t audits, int64_t commands)
{
	assert_int_equal(rows("payment"), payments);
	assert_int_equal(rows("ibid.event"), events);
	assert_int_equal(rows("ibid.audit"), audits);
	assert_int_equal(rows("ibid.command"), commands);
}

#define PAYLOAD(reference) "{\"reference\":\"" reference "\",\"amount\":1.00}"

/* ---- Expiry --------------------------------------------------------------------------------- */

static void a_key_is_recognised_until_it_expires_and_then_refused(void **state) /* B10 */
{
	(void)state;
	static const char *const operations[] = {"pay", "pay-brief"};
	for (size_t i = 0; i < 2; i++) {
		const char *payload = i ? PAYLOAD("r-brief") : PAYLOAD("r-full");
		bed_expect(ibid, operations[i], "k", payload, "executed 201");
		env_virtual_advance(&clock_env, 30 * DAY_US - 1);
		bed_expect(ibid, operations[i], "k", payload, "replayed executed 201");
		env_virtual_advance(&clock_env, 1);
		struct ibid_result *result = bed_submit(ibid, operations[i], "k", payload);
		assert_string_equal(bed_say(result), "expired 410");
		assert_string_equal(ibid_result_reason(result), "KEY_EXPIRED");
		assert_non_null(strstr(ibid_result_text(result), "send it with a new key"));
		assert_non_null(strstr(ibid_result_body(result), "/problems/key-expired"));
		assert_int_equal(strlen(ibid_result_command_id(result)), 36);
		ibid_result_free(result);
	}
	assert_rows(2, 2, 2, 2);
}

static void an_expired_key_is_refused_whatever_the_payload_and_state(void **state) /* B10 */
{
	(void)state;
	bed_expect(ibid, "pay", "done", PAYLOAD("r-1"), "executed 201");
	bed_expect(ibid, "pay", "rejected",
	           "{\"reference\":\"r-2\",\"amount\":1.00,\"fail\":\"reject\"}", "rejected 422");
	bed_expect(ibid, "pay", "failed", "{\"reference\":\"r-3\",\"amount\":1.00,\"fail\":\"broken\"}",
	           "failed 500");
	bed_expect(ibid, "pay", "unknown", PAYLOAD("r-4"), "executed 201");
	bed_exec(&bed,
	         "update ibid.command set state = 'UNKNOWN', audit_id = null where key = 'unknown'");
	env_virtual_advance(&clock_env, 31 * DAY_US);
	bed_expect(ibid, "pay", "done", PAYLOAD("r-9"), "expired 410");
	bed_expect(ibid, "pay", "rejected", PAYLOAD("r-9"), "expired 410");
	bed_expect(ibid, "pay", "failed", PAYLOAD("r-9"), "expired 410");
	/* What has no outcome does not expire: nobody knows yet what it did. */
	bed_expect(ibid, "pay", "unknown", PAYLOAD("r-4"), "unknown 500");
	assert_int_equal(rows("ibid.evidence"), 0);
	assert_rows(2, 2, 2, 4);
}

static void check_runs_again(const char *operation, const char *first, const char *second)
{
	char before[37], after[37];
	struct ibid_result *result = bed_submit(ibid, operation, "k", first);
	assert_string_equal(bed_say(result), "executed 201");
	snprintf(before, sizeof before, "%s", ibid_result_command_id(result));
	ibid_result_free(result);
	env_virtual_advance(&clock_env, 10 * DAY_US);
	result = bed_submit(ibid, operation, "k", second);
	assert_string_equal(bed_say(result), "executed 201");
	snprintf(after, sizeof after, "%s", ibid_result_command_id(result));
	ibid_result_free(result);

	assert_string_not_equal(before, after);
	assert_rows(2, 2, 2, 1);
	const char *const ids[] = {before, after};
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
		    bed_number(&bed, "select count(*) from ibid.audit where command_id = '%s'", ids[i]), 1);
		assert_int_equal(
		    bed_number(&bed, "select count(*) from ibid.event where command_id = '%s'", ids[i]), 1);
		assert_int_equal(bed_number(&bed, "select count(*) from payment where id = '%s'", ids[i]),
		                 1);
	}
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.command where id = '%s' and audit_id = "
	                            "id and attempts = 1",
	                            after),
	                 1);
	/* The new command has its own life: replayed, and in conflict with the payload of the old. */
	bed_expect(ibid, operation, "k", second, "replayed executed 201");
	bed_expect(ibid, operation, "k", first, "conflict 409");
	env_virtual_advance(&clock_env, 10 * DAY_US - 1);
	bed_expect(ibid, operation, "k", second, "replayed executed 201");
}

static void where_uniqueness_protects_an_expired_key_may_run_as_a_new_command(void **state)
{ /* B10 */
	(void)state;
	check_runs_again("again-full", PAYLOAD("r-1"), PAYLOAD("r-2"));
	/* The old body went with the old command. */
	assert_int_equal(rows("ibid.answer"), 1);
}

static void and_so_it_does_by_the_short_way(void **state) /* B10 */
{
	(void)state;
	check_runs_again("again-brief", PAYLOAD("r-1"), PAYLOAD("r-2"));
}

static void a_fact_that_is_still_there_is_linked_and_not_repeated(void **state) /* B10 B09 */
{
	(void)state;
	static const char *const operations[] = {"again-full", "again-brief"};
	for (size_t i = 0; i < 2; i++) {
		const char *payload = i ? PAYLOAD("r-brief") : PAYLOAD("r-full");
		int64_t n = (int64_t)i;
		bed_expect(ibid, operations[i], "k", payload, "executed 201");
		env_virtual_advance(&clock_env, 11 * DAY_US);
		bed_expect(ibid, operations[i], "k", payload, "linked 200");
		bed_expect(ibid, operations[i], "k", payload, "replayed linked 200");
		assert_rows(n + 1, n + 1, 2 * (n + 1), n + 1);
	}
}

static void an_expired_rejection_or_failure_runs_anew_too(void **state) /* B10 */
{
	(void)state;
	bed_expect(ibid, "again-full", "k-1",
	           "{\"reference\":\"r-1\",\"amount\":1.00,\"fail\":\"reject\"}", "rejected 422");
	bed_expect(ibid, "again-brief", "k-2",
	           "{\"reference\":\"r-2\",\"amount\":1.00,\"fail\":\"broken\"}", "failed 500");
	env_virtual_advance(&clock_env, 11 * DAY_US);
	bed_expect(ibid, "again-full", "k-1", PAYLOAD("r-1"), "executed 201");
	bed_expect(ibid, "again-brief", "k-2", PAYLOAD("r-2"), "executed 201");
	/* And a run that is rejected in the place of a success leaves the rejection. */
	env_virtual_advance(&clock_env, 11 * DAY_US);
	bed_expect(ibid, "again-full", "k-1",
	           "{\"reference\":\"r-3\",\"amount\":1.00,\"fail\":\"reject\"}", "rejected 422");
	assert_rows(2, 2, 2, 2);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command where state = 'REJECTED'"),
	                 1);
}

enum { RACERS = 8 };

static void *race(void *user)
{
	struct ibid_result *result = bed_submit(ibid, user, "k", PAYLOAD("r-2"));
	enum ibid_decision decision = ibid_result_decision(result);
	bool ran = decision == IBID_DECISION_EXECUTED && !ibid_result_replayed(result);
	if (decision != IBID_DECISION_EXECUTED && decision != IBID_DECISION_IN_PROGRESS)
		fail_msg("%s", bed_say(result));
	ibid_result_free(result);
	return ran ? user : NULL;
}

static void of_many_at_once_one_takes_the_place_of_the_expired_command(void **state) /* B10 B12 */
{
	(void)state;
	static char names[2][12] = {"again-full", "again-brief"};
	for (size_t i = 0; i < 2; i++) {
		pthread_t threads[RACERS];
		int ran = 0;
		bed_exec(&bed, "delete from payment");
		bed_expect(ibid, names[i], "k", PAYLOAD("r-1"), "executed 201");
		env_virtual_advance(&clock_env, 11 * DAY_US);
		for (size_t n = 0; n < RACERS; n++)
			assert_int_equal(pthread_create(&threads[n], NULL, race, names[i]), 0);
		for (size_t n = 0; n < RACERS; n++) {
			void *done;
			pthread_join(threads[n], &done);
			ran += done != NULL;
		}
		assert_int_equal(ran, 1);
		assert_int_equal(rows("payment"), 2);
	}
	assert_int_equal(rows("ibid.command"), 2);
	assert_int_equal(rows("ibid.audit"), 4);
	assert_int_equal(rows("ibid.event"), 4);
}

/* ---- Evidence of duplicates ----------------------------------------------------------------- */

static void reopen(void)
{
	ibid_close(ibid); /* writes what is noted */
	ibid = bed_ibid(&bed, &(struct api_seams){.env = &clock_env.env});
}

static int64_t duplicates(const char *column, const char *key)
{
	return bed_number(&bed,
	                  "select %s from ibid.duplicate where command_id = "
	                  "(select id from ibid.command where key = '%s')",
	                  column, key);
}

static void duplicates_are_counted_whatever_they_are_told(void **state) /* B18 */
{
	(void)state;
	bed_expect(ibid, "pay", "k-1", PAYLOAD("r-1"), "executed 201");
	bed_expect(ibid, "pay", "k-2", PAYLOAD("r-2"), "executed 201");
	for (int i = 0; i < 3; i++)
		bed_expect(ibid, "pay", "k-1", PAYLOAD("r-1"), "replayed executed 201");
	bed_expect(ibid, "pay", "k-1", PAYLOAD("r-9"), "conflict 409");
	reopen();
	assert_int_equal(duplicates("count", "k-1"), 4);
	env_virtual_advance(&clock_env, 31 * DAY_US);
	bed_expect(ibid, "pay", "k-1", PAYLOAD("r-1"), "expired 410");
	reopen();
	assert_int_equal(duplicates("count", "k-1"), 5);
	assert_int_equal(
	    bed_kind == BED_SQLITE
	        ? duplicates("last_us - first_us", "k-1")
	        : duplicates("(extract(epoch from last_at - first_at) * 1000000)::bigint", "k-1"),
	    31 * DAY_US);
	assert_int_equal(rows("ibid.duplicate"), 1); /* k-2 never came again */
	assert_int_equal(rows("ibid.duplicate_seen"), 0);
	assert_int_equal(duplicates("unlisted", "k-1"), 0);
}

static void each_duplicate_is_kept_where_the_contract_says_so(void **state) /* B18 */
{
	(void)state;
	struct ibid_result *result;
	bed_expect(ibid, "pay-each", "k", PAYLOAD("r-1"), "executed 201");
	env_virtual_advance(&clock_env, 1000000);
	assert_int_equal(
	    ibid_submit(ibid,
	                IBID_COMMAND(.tenant = "t", .client = "c", .actor = "it's me",
	                             .operation = "pay-each", .key = "k", .payload = PAYLOAD("r-1")),
	                &result, NULL),
	    IBID_OK);
	ibid_result_free(result);
	bed_expect(ibid, "pay-each", "k", PAYLOAD("r-9"), "conflict 409");
	reopen();
	assert_int_equal(duplicates("count", "k"), 2);
	assert_int_equal(duplicates("unlisted", "k"), 0);
	assert_int_equal(rows("ibid.duplicate_seen"), 2);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.duplicate_seen where client = 'c' "
	                                  "and actor = 'it''s me' and decision = 'executed' and "
	                                  "fingerprint = (select fingerprint from ibid.command)"),
	                 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.duplicate_seen where actor = 'a' "
	                                  "and decision = 'conflict' and fingerprint <> (select "
	                                  "fingerprint from ibid.command)"),
	                 1);
}

/* More than the buffer holds before it is written, from many threads: the sum is exact. */
enum { STORM = 3000 };

static void *storm(void *user)
{
	for (int i = 0; i < STORM; i++)
		ibid_result_free(bed_submit(ibid, user, "k", PAYLOAD("r-1")));
	return NULL;
}

static void a_storm_of_duplicates_is_counted_exactly(void **state) /* B18 */
{
	(void)state;
	static char name[] = "pay-each";
	pthread_t threads[4];
	bed_expect(ibid, name, "k", PAYLOAD("r-1"), "executed 201");
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, storm, name), 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	reopen();
	assert_int_equal(duplicates("count", "k"), 4 * STORM);
	assert_int_equal(rows("ibid.duplicate_seen") + duplicates("unlisted", "k"), 4 * STORM);
}

/* Notes which writes run on the thread that submits. */
struct writes {
	pthread_t caller;
	struct hook hook;
	int caller_writes, flushes;
};

static bool note_write(void *user, const struct hook_point *point)
{
	struct writes *writes = user;
	if (point->kind != HOOK_BEFORE)
		return false;
	bool flush = strcmp(point->statement, "duplicate_put") == 0;
	bool write = flush || strcmp(point->statement, "commit") == 0 ||
	             strcmp(point->statement, "evidence_count") == 0;
	if (write && pthread_equal(pthread_self(), writes->caller))
		writes->caller_writes++;
	if (flush)
		__atomic_add_fetch(&writes->flushes, 1, __ATOMIC_SEQ_CST);
	return false;
}

static struct store *watch_writes(void *user, struct store *store)
{
	struct writes *writes = user;
	writes->hook = (struct hook){note_write, user};
	store->hook = &writes->hook;
	return store;
}

static void a_replay_writes_nothing_in_its_callers_path(void **state) /* B18 */
{
	(void)state;
	struct writes writes = {.caller = pthread_self()};
	struct ibid *own = bed_ibid(&bed, &(struct api_seams){.wrap = watch_writes, .user = &writes});
	bed_expect(own, "pay-each", "k", PAYLOAD("r-1"), "executed 201");
	writes.caller_writes = 0;
	/* Until the thread has written: it does so without being asked, after a second or when there is
	 * much. */
	for (int i = 0; i < 1000000 && !__atomic_load_n(&writes.flushes, __ATOMIC_SEQ_CST); i++)
		bed_expect(own, "pay-each", "k", PAYLOAD("r-1"), "replayed executed 201");
	assert_true(writes.flushes > 0);
	assert_int_equal(writes.caller_writes, 0);
	ibid_close(own);
}

/* The first writings of duplicates fail, as if the server had gone away. */
static int refusals; /* still to come */

static enum ibid_code (*real_put_duplicates)(struct store *, const struct duplicate_row *, size_t,
                                             const struct duplicate_seen_row *, size_t,
                                             struct ibid_err *);

static enum ibid_code refuse_some(struct store *store, const struct duplicate_row *rows_,
                                  size_t count, const struct duplicate_seen_row *seen,
                                  size_t seen_count, struct ibid_err *err)
{
	if (refusals > 0) {
		refusals--;
		return err_set(err, IBID_UNAVAILABLE, "refused by the test");
	}
	return real_put_duplicates(store, rows_, count, seen, seen_count, err);
}

static struct store *refusing(void *user, struct store *store)
{
	static struct store_ops ops;
	(void)user;
	ops = *store->ops;
	real_put_duplicates = ops.put_duplicates;
	ops.put_duplicates = refuse_some;
	store->ops = &ops;
	return store;
}

static int lost_lines;

static void count_lost(void *user, enum ibid_log_level level, const char *line)
{
	(void)user;
	(void)level;
	lost_lines += strstr(line, "duplicates.lost") != NULL;
}

static void replay_while_refusing(int times, const char *key, const char *payload)
{
	struct ibid *own = NULL;
	struct ibid_err err = {0};
	refusals = times;
	lost_lines = 0;
	assert_int_equal(
	    api_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts, .log = count_lost),
	             &(struct api_seams){.wrap = refusing}, &own, &err),
	    IBID_OK);
	bed_expect(own, "pay", key, payload, "executed 201");
	bed_expect(own, "pay", key, payload, "replayed executed 201");
	ibid_close(own);
}

static void what_could_not_be_written_is_tried_again_or_told(void **state) /* B18 */
{
	(void)state;
	replay_while_refusing(1, "k-1", PAYLOAD("r-1"));
	assert_int_equal(duplicates("count", "k-1"), 1);
	assert_int_equal(lost_lines, 0);
	replay_while_refusing(100, "k-2", PAYLOAD("r-2"));
	assert_int_equal(duplicates("count", "k-2"), 0);
	assert_int_equal(lost_lines, 1);
}

static void a_child_that_closes_its_parents_handle_counts_nothing(void **state) /* B18 */
{
	(void)state;
	int status;
	bed_expect(ibid, "pay", "k", PAYLOAD("r-1"), "executed 201");
	bed_expect(ibid, "pay", "k", PAYLOAD("r-1"), "replayed executed 201");
	pid_t child = fork();
	if (child == 0) {
		duplicates_close(ibid->ledger->duplicates);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	reopen();
	assert_int_equal(duplicates("count", "k"), 1);
}

/* ---- Retention ------------------------------------------------------------------------------ */

static struct retention_count retain_with(struct retain_options options)
{
	struct retention_count count = {0};
	struct archive_report events = {0};
	struct ibid_err err = {0};
	bool finished = false;
	options.events = &events;
	if (!options.batch)
		options.batch = 3; /* so that there are several steps */
	if (ledger_retain(ibid->ledger->store, ibid->ledger->contracts, &clock_env.env, &options,
	                  &count, &finished, &err))
		fail_msg("retain: %s", err.text);
	assert_true(finished);
	archive_report_release(&events);
	return count;
}

static struct retention_count retain(void)
{
	return retain_with((struct retain_options){.dry_run = false});
}

static void assert_nothing_removed(struct retention_count count)
{
	static const struct retention_count nothing;
	assert_memory_equal(&count, &nothing, sizeof count);
}

enum { MANY = 10 };

/* Ten payments, a rejection and one whose outcome is unknown, of two tenants; duplicates of one. */
static void fill(void)
{
	char key[16], payload[64];
	struct ibid_result *result;
	for (int i = 0; i < MANY; i++) {
		snprintf(key, sizeof key, "k-%d", i);
		snprintf(payload, sizeof payload, "{\"reference\":\"r-%d\",\"amount\":1.00}", i);
		assert_int_equal(
		    ibid_submit(ibid,
		                IBID_COMMAND(.tenant = i % 2 ? "t" : "u", .client = "c", .operation = "pay",
		                             .key = key, .payload = payload),
		                &result, NULL),
		    IBID_OK);
		assert_string_equal(bed_say(result), "executed 201");
		ibid_result_free(result);
	}
	bed_expect(ibid, "pay", "rejected", "{\"reference\":\"x\",\"amount\":1.00,\"fail\":\"reject\"}",
	           "rejected 422");
	bed_expect(ibid, "pay", "unknown", PAYLOAD("y"), "executed 201");
	bed_exec(&bed,
	         "update ibid.command set state = 'UNKNOWN', audit_id = null where key = 'unknown'");
	bed_expect(ibid, "pay", "k-1", PAYLOAD("r-9"), "conflict 409");
	reopen();
}

static int64_t bodies(void)
{
	return rows("ibid.answer") +
	       bed_number(&bed, "select count(*) from ibid.command where text is not null");
}

static void after_expiry_a_command_loses_its_body_and_still_answers(void **state) /* B10 */
{
	(void)state;
	fill();
	env_virtual_advance(&clock_env, 30 * DAY_US - 1);
	assert_nothing_removed(retain());
	env_virtual_advance(&clock_env, 2 * DAY_US);
	int64_t before = bodies();
	struct retention_count dry = retain_with((struct retain_options){.dry_run = true});
	assert_int_equal(dry.tombstones, MANY + 1);
	assert_int_equal(dry.answers, MANY);
	assert_int_equal(bodies(), before);
	struct retention_count count = retain();
	assert_memory_equal(&count, &dry, sizeof count);
	assert_int_equal(count.commands + count.audit + count.events + count.evidence, 0);
	assert_int_equal(bodies(), 1); /* of the unknown one */
	assert_nothing_removed(retain());
	bed_expect(ibid, "pay", "k-1", PAYLOAD("r-1"), "expired 410");
	bed_expect(ibid, "pay", "rejected", PAYLOAD("x"), "expired 410");
	bed_expect(ibid, "pay", "unknown", PAYLOAD("y"), "unknown 500");
	assert_rows(MANY + 1, MANY + 1, MANY + 1, MANY + 2);
}

static void after_the_audit_period_a_command_is_forgotten_with_its_evidence(void **state) /* B10 */
{
	(void)state;
	fill();
	env_virtual_advance(&clock_env, 3650 * DAY_US - 1);
	struct retention_count count = retain();
	assert_int_equal(count.commands, 0);
	assert_int_equal(count.tombstones, MANY + 1);
	env_virtual_advance(&clock_env, 10 * DAY_US);
	struct retention_count dry = retain_with((struct retain_options){.dry_run = true});
	assert_int_equal(rows("ibid.command"), MANY + 2);
	count = retain();
	assert_memory_equal(&count, &dry, sizeof count);
	assert_int_equal(count.commands, MANY + 1);
	assert_int_equal(count.evidence, 1);
	assert_int_equal(count.duplicates, 1);
	assert_int_equal(rows("ibid.command"), 1); /* what has no outcome stays */
	assert_int_equal(rows("ibid.evidence") + rows("ibid.duplicate") + rows("ibid.duplicate_seen"),
	                 0);
	assert_int_equal(rows("ibid.event"), MANY + 1); /* nobody said that they were delivered */
	assert_int_equal(rows("payment"), MANY + 1);    /* not ours */
	if (bed_kind == BED_SQLITE) {
		assert_int_equal(count.audit, MANY);
		assert_int_equal(rows("ibid.audit"), 1);
	}
	assert_nothing_removed(retain());
	bed_expect(ibid, "pay", "unknown", PAYLOAD("y"), "unknown 500");
}

static void events_go_only_when_that_is_said(void **state) /* B10 */
{
	(void)state;
	fill();
	env_virtual_advance(&clock_env, 100 * DAY_US);
	bed_expect(ibid, "pay", "late", PAYLOAD("late"), "executed 201");
	assert_int_equal(retain().events, 0);
	struct retain_options options = {.events_us = 99 * DAY_US, .dry_run = true};
	struct retention_count dry = retain_with(options);
	assert_int_equal(rows("ibid.event"), MANY + 2);
	options.dry_run = false;
	struct retention_count count = retain_with(options);
	assert_int_equal(count.events, dry.events);
	assert_int_equal(rows("ibid.event"), MANY + 2 - count.events);
	if (bed_kind == BED_SQLITE)
		assert_int_equal(count.events, MANY + 1);
}

static void history_of_a_month_is_dropped_as_a_whole(void **state) /* B10 */
{
	(void)state;
	int64_t wall_us = env_wall_us(env_system());
	if (bed_kind == BED_SQLITE)
		return; /* deletes rows: above */
	/* Two months from now there is a partition already. */
	env_virtual_advance(&clock_env, wall_us + 62 * DAY_US - env_wall_us(&clock_env.env));
	bed_expect(ibid, "pay", "k", PAYLOAD("r-1"), "executed 201");
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.audit where tableoid <> "
	                                  "'ibid.audit_default'::regclass"),
	                 1);
	/* Each partition keeps its rows against anybody but retention. */
	assert_int_equal(
	    bed_number(&bed, "select count(*) from pg_trigger join pg_inherits on inhrelid = tgrelid "
	                     "where inhparent in ('ibid.audit'::regclass, 'ibid.event'::regclass) and "
	                     "tgtype & 32 <> 0"),
	    bed_number(&bed, "select count(*) from pg_inherits where inhparent in "
	                     "('ibid.audit'::regclass, 'ibid.event'::regclass)"));
	env_virtual_advance(&clock_env, 3600 * DAY_US);
	assert_int_equal(retain().audit, 0);
	env_virtual_advance(&clock_env, 100 * DAY_US);
	assert_int_equal(retain_with((struct retain_options){.dry_run = true}).audit, 1);
	/* Who knows how long an operation needs them that these contracts don't tell of? */
	bed_exec(&bed, "insert into ibid.contract (kind, name, version, digest, text, at) select kind, "
	               "'elsewhere', version, digest, text, at from ibid.contract limit 1");
	assert_int_equal(retain().audit, 0);
	bed_exec(&bed, "delete from ibid.contract where name = 'elsewhere'");
	assert_int_equal(retain().audit, 1);
	assert_int_equal(rows("ibid.audit"), 0);
	assert_int_equal(rows("ibid.event"), 1);
	assert_int_equal(retain_with((struct retain_options){.events_us = DAY_US}).events, 1);
	assert_int_equal(rows("ibid.event"), 0);
}

static void *retain_thread(void *user)
{
	*(struct retention_count *)user = retain_with((struct retain_options){.batch = 1});
	return NULL;
}

static void two_retentions_at_once_remove_everything_once(void **state) /* B10 */
{
	(void)state;
	struct retention_count counts[2];
	pthread_t threads[2];
	fill();
	env_virtual_advance(&clock_env, 3700 * DAY_US);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, retain_thread, &counts[i]), 0);
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	struct retention_count rest = retain();
	assert_int_equal(counts[0].commands + counts[1].commands + rest.commands, MANY + 1);
	assert_int_equal(rows("ibid.command"), 1);
}

static void a_retention_that_was_broken_off_is_finished_by_the_next(void **state) /* B10 */
{
	(void)state;
	fill();
	fault_path("retention");
	env_virtual_advance(&clock_env, 3700 * DAY_US);
	for (unsigned n = 1;; n++) {
		struct fault fault = {.kind = FAULT_LOSE, .at = n};
		struct ibid_err err = {0};
		struct retention_count count;
		struct ibid *own = NULL;
		bool finished;
		if (api_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts),
		             &(struct api_seams){.env = &clock_env.env, .wrap = fault_set, .user = &fault},
		             &own, &err))
			continue; /* the fault was in opening */
		struct retain_options options = {.batch = 2};
		enum ibid_code code = ledger_retain(own->ledger->store, own->ledger->contracts,
		                                    &clock_env.env, &options, &count, &finished, &err);
		bool fired = fault.fired;
		ibid_close(own);
		if (!fired) {
			assert_int_equal(code, IBID_OK);
			break;
		}
	}
	assert_int_equal(rows("ibid.command"), 1);
	assert_nothing_removed(retain());
}

/* Every second step meets another run in a deadlock. */
static const struct store_ops *real_ops;
static int steps;

static enum ibid_code collide(struct store *store, struct arena *arena,
                              const struct retention *retention, struct retention_cursor *cursor,
                              struct retention_count *ret, struct ibid_err *err)
{
	if (steps++ % 2 == 0)
		return err_set(err, IBID_RETRY, "deadlock detected");
	return real_ops->retain_commands(store, arena, retention, cursor, ret, err);
}

static void a_step_that_met_another_run_in_a_deadlock_is_taken_again(void **state)
{
	(void)state;
	fill(); /* opens the handle anew */
	env_virtual_advance(&clock_env, 31 * DAY_US);
	struct store *store = ibid->ledger->store;
	struct store_ops colliding = *store->ops;
	real_ops = store->ops;
	steps = 0;
	colliding.retain_commands = collide;
	store->ops = &colliding;
	struct retention_count count = retain();
	store->ops = real_ops;
	assert_true(steps > 2);
	assert_true(count.tombstones > 0);
	assert_nothing_removed(retain());
}

static void a_command_of_no_contract_is_kept(void **state) /* B10 */
{
	(void)state;
	static const char *const left[] = {"call.yaml", NULL};
	bed_expect(ibid, "pay", "k", PAYLOAD("r-1"), "executed 201");
	ibid_close(ibid);
	bed_keep_contracts(&bed, left);
	ibid = bed_ibid(&bed, &(struct api_seams){.env = &clock_env.env});
	env_virtual_advance(&clock_env, 10000 * DAY_US);
	struct retention_count count = retain();
	assert_int_equal(count.tombstones, 1);
	assert_int_equal(count.commands + count.audit, 0);
	assert_rows(1, 1, 1, 1);
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(a_key_is_recognised_until_it_expires_and_then_refused),
	    TEST(an_expired_key_is_refused_whatever_the_payload_and_state),
	    TEST(where_uniqueness_protects_an_expired_key_may_run_as_a_new_command),
	    TEST(and_so_it_does_by_the_short_way),
	    TEST(a_fact_that_is_still_there_is_linked_and_not_repeated),
	    TEST(an_expired_rejection_or_failure_runs_anew_too),
	    TEST(of_many_at_once_one_takes_the_place_of_the_expired_command),
	    TEST(duplicates_are_counted_whatever_they_are_told),
	    TEST(each_duplicate_is_kept_where_the_contract_says_so),
	    TEST(a_storm_of_duplicates_is_counted_exactly),
	    TEST(a_replay_writes_nothing_in_its_callers_path),
	    TEST(what_could_not_be_written_is_tried_again_or_told),
	    TEST(a_child_that_closes_its_parents_handle_counts_nothing),
	    TEST(after_expiry_a_command_loses_its_body_and_still_answers),
	    TEST(after_the_audit_period_a_command_is_forgotten_with_its_evidence),
	    TEST(events_go_only_when_that_is_said),
	    TEST(history_of_a_month_is_dropped_as_a_whole),
	    TEST(two_retentions_at_once_remove_everything_once),
	    TEST(a_retention_that_was_broken_off_is_finished_by_the_next),
	    TEST(a_step_that_met_another_run_in_a_deadlock_is_taken_again),
	    TEST(a_command_of_no_contract_is_kept),
	};
	return cmocka_run_group_tests_name("retain", tests, NULL, NULL);
}
