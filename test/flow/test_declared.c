/* SPDX-License-Identifier: Apache-2.0 */
/* test_declared.c -- answers, events, rejections and rows that a contract declares, on either store
 * with the same scripts. */
#include "support/bed.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/declared"

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

static int64_t rows(const char *table)
{
	return bed_number(&bed, "select count(*) from %s", table);
}

static void assert_count(int64_t expected, const char *table)
{
	if (rows(table) != expected)
		fail_msg("%s: %lld rows, expected %lld", table, (long long)rows(table),
		         (long long)expected);
}

/* Submit and expect what was not executed: what is said, its reason and a part of its sentence. */
static void expect_refused(const char *operation, const char *key, const char *payload,
                           const char *said, const char *reason, const char *part)
{
	struct ibid_result *result = bed_submit(ibid, operation, key, payload);
	const char *own = ibid_result_reason(result), *text = ibid_result_text(result);
	if (strcmp(bed_say(result), said) != 0 || !own || strcmp(own, reason) != 0 || !text ||
	    !strstr(text, part))
		fail_msg("%s: %s, %s: %s", payload, bed_say(result), own ? own : "-", text ? text : "-");
	ibid_result_free(result);
}

/* ---- Answers -------------------------------------------------------------------------------- */

#define PAY "{\"from\":\"A\",\"to\":\"B\",\"amount\":12.50}"

static void
a_declared_answer_is_made_of_parameters_and_replayed_byte_for_byte(void **state) /* B02 */
{
	(void)state;
	char expected[256], body[256];
	struct ibid_result *result = bed_submit(ibid, "pay", "k-1", PAY);
	assert_string_equal(bed_say(result), "executed 201");
	snprintf(expected, sizeof expected, "{\"amount\":12.5,\"id\":\"%s\",\"now\":\"",
	         ibid_result_command_id(result));
	snprintf(body, sizeof body, "%s", ibid_result_body(result));
	assert_memory_equal(body, expected, strlen(expected));
	assert_non_null(strstr(body, "Z\",\"resource\":null}"));
	assert_string_equal(ibid_result_resource_type(result), "payment");
	assert_string_equal(ibid_result_resource_id(result), ibid_result_command_id(result));
	ibid_result_free(result);
	for (int i = 0; i < 3; i++) {
		result = bed_submit(ibid, "pay", "k-1", PAY);
		assert_string_equal(bed_say(result), "replayed executed 201");
		assert_string_equal(ibid_result_body(result), body);
		ibid_result_free(result);
	}
	assert_count(1, "payment");
	assert_count(1, "ibid.event");
	assert_count(1, "ibid.audit");
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.audit where resource_type = "
	                                  "'payment'"),
	                 1);
}

static void the_first_caller_hears_the_body_that_is_not_kept(void **state) /* B08 */
{
	(void)state;
	struct ibid_result *result = bed_submit(ibid, "pay-free", "k-1",
	                                        "{\"from\":\"A\",\"amount\":1}");
	assert_string_equal(bed_say(result), "executed 201");
	assert_non_null(ibid_result_body(result));
	ibid_result_free(result);
	result = bed_submit(ibid, "pay-free", "k-1", "{\"from\":\"A\",\"amount\":1.0}");
	assert_string_equal(bed_say(result), "replayed executed 201");
	assert_string_equal(ibid_result_resource_type(result), "payment");
	ibid_result_free(result);
}

static void another_payload_under_the_key_is_a_conflict(void **state) /* B03, B04 */
{
	(void)state;
	bed_expect(ibid, "pay", "k-1", PAY, "executed 201");
	struct ibid_result *result = bed_submit(ibid, "pay", "k-1",
	                                        "{\"from\":\"A\",\"to\":\"B\",\"amount\":12.51}");
	assert_int_equal(ibid_result_decision(result), IBID_DECISION_CONFLICT);
	ibid_result_free(result);
	assert_count(1, "payment");
}

static void a_script_may_leave_the_answer_and_still_make_the_events(void **state)
{
	(void)state;
	struct ibid_result *result = bed_submit(ibid, "computes", "k-1", "{\"id\":\"o \\\"1\\\"\"}");
	assert_string_equal(bed_say(result), "executed 202");
	assert_string_equal(ibid_result_body(result), "\"o \\\"1\\\"\"");
	ibid_result_free(result);
	assert_count(1, "ibid.event");
	expect_refused("computes", "k-2", "{\"id\":\"never\"}", "rejected 409", "NOT_TODAY", "no");
	assert_count(1, "raised");
}

static void a_script_may_answer_and_leave_the_events(void **state)
{
	(void)state;
	bed_expect(ibid, "answers", "k-1", "{\"id\":\"o-1\"}", "executed 203");
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.event where payload = '{\"id\":\"o-1\"}'"), 1);
}

/* ---- Events --------------------------------------------------------------------------------- */

static void a_declared_event_holds_each_parameter_in_its_own_type(void **state) /* C01 */
{
	(void)state;
	bed_expect(
	    ibid, "pay", "k-1",
	    "{\"from\":\"A\\u00e9\\\"\",\"to\":\"B\",\"amount\":12.50,\"count\":7,\"urgent\":true,"
	    "\"due\":\"2026-03-01\",\"at\":\"2026-03-01T01:30:00.500+01:00\","
	    "\"lines\":[{\"b\":1.10,\"a\":null}]}",
	    "executed 201");
	assert_int_equal(
	    bed_number(&bed,
	               "select count(*) from ibid.event where type = 'PaymentCreated' and topic = "
	               "'tests.payment.events.v1' and payload = "
	               "'{\"amount\":12.5,\"at\":\"2026-03-01T00:30:00.5Z\",\"colon\":\":from\","
	               "\"count\":7,\"due\":\"2026-03-01\",\"from\":\"A\xc3\xa9\\\"\","
	               "\"kind\":\"payment\",\"lines\":[{\"a\":null,\"b\":1.1}],"
	               "\"nested\":[12.5,null],\"one\":1,\"to\":\"B\",\"urgent\":true}'"),
	    1);
	bed_expect(ibid, "pay", "k-2",
	           "{\"from\":\"A\",\"to\":\"B\",\"amount\":1234567890123456789.123400}",
	           "executed 201");
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.event where payload = "
	                     "'{\"amount\":1234567890123456789.1234,\"at\":null,\"colon\":\":from\","
	                     "\"count\":null,\"due\":null,\"from\":\"A\",\"kind\":\"payment\","
	                     "\"lines\":null,\"nested\":[1234567890123456789.1234,null],\"one\":1,"
	                     "\"to\":\"B\",\"urgent\":null}'"),
	    1);
	bed_expect(ibid, "pay-free", "k-3", "{\"from\":\"A\",\"amount\":1000000000000000000000}",
	           "executed 201");
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event where payload = "
	                                  "'{\"amount\":1e+21,\"from\":\"A\"}'"),
	                 1);
}

static void events_of_one_aggregate_follow_each_other(void **state) /* C02, I5 */
{
	(void)state;
	bed_expect(ibid, "pay-free", "k-1", "{\"from\":\"A\",\"amount\":1}", "executed 201");
	bed_expect(ibid, "pay-free", "k-2", "{\"from\":\"A\",\"amount\":2}", "executed 201");
	assert_int_equal(bed_number(&bed, "select count(distinct version) from ibid.event where "
	                                  "aggregateid = 'A' and version between 1 and 4"),
	                 4);
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.event where version = 4 and ordinal "
	                            "= 2 and payload = '{\"amount\":0,\"from\":\"A\"}'"),
	                 1);
}

static void a_declared_event_is_held_to_its_contract(void **state)
{
	(void)state;
	char payload[1024], name[260], lines[500];
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	snprintf(payload, sizeof payload, "{\"from\":\"%s\",\"to\":\"B\",\"amount\":1}", name);
	expect_refused("pay", "k-1", payload, "failed 500", "HANDLER_FAILED", "partition key /from");
	name[250] = '\0';
	memset(lines, 'l', sizeof lines);
	lines[sizeof lines - 1] = '\0';
	snprintf(payload, sizeof payload,
	         "{\"from\":\"%s\",\"to\":\"B\",\"amount\":1,\"lines\":[\"%s\"]}", name, lines);
	expect_refused("pay", "k-2", payload, "failed 500", "HANDLER_FAILED",
	               "bytes, and its contract allows 700");
	assert_count(0, "payment");
	assert_count(0, "ibid.event");
	assert_count(0, "ibid.audit");
}

static void a_script_emits_nothing_where_the_contract_does(void **state)
{
	(void)state;
	expect_refused("emits-anyway", "k-1", "{\"id\":\"o-1\"}", "failed 500", "HANDLER_FAILED",
	               "the contract makes the command's events itself");
	assert_count(0, "raised");
	assert_count(0, "ibid.event");
}

#define ORDER(version, key) "{\"id\":\"o-1\",\"version\":" #version ",\"key\":\"" key "\"}"

static void a_declared_version_is_the_next_or_a_conflict(void **state) /* C02 */
{
	(void)state;
	bed_expect(ibid, "order", "k-1", ORDER(1, "e-1"), "executed 200");
	expect_refused("order", "k-2", ORDER(1, "e-2"), "rejected 409", "VERSION_CONFLICT", "version");
	bed_expect(ibid, "order", "k-3", ORDER(2, "e-3"), "executed 200");
	expect_refused("order", "k-4", ORDER(3, "e-3"), "rejected 409", "EVENT_KEY_USED", "");
	expect_refused("order", "k-2", ORDER(1, "e-2"), "replayed rejected 409", "VERSION_CONFLICT",
	               "");
	assert_count(2, "raised");
	assert_count(2, "ibid.event");
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event where key = 'e-3'"), 1);
}

/* ---- Rejections ----------------------------------------------------------------------------- */

static void expect_rule(const char *key, const char *payload, const char *said, const char *reason)
{
	char again[64];
	snprintf(again, sizeof again, "replayed %s", said);
	expect_refused("pay", key, payload, said, reason, "");
	expect_refused("pay", key, payload, again, reason, "");
}

static void a_declared_rule_rejects_before_anything_is_done(void **state) /* B10 */
{
	(void)state;
	expect_rule("k-1", "{\"from\":\"A\",\"to\":\"A\",\"amount\":1}", "rejected 422",
	            "SAME_ACCOUNT");
	expect_rule("k-2", "{\"from\":\"A\",\"to\":\"B\",\"amount\":0.0}", "rejected 400", "NOTHING");
	expect_rule("k-3", "{\"from\":\"A\",\"to\":\"B\",\"amount\":10.1,\"limit\":10}", "rejected 409",
	            "OVER_LIMIT");
	expect_rule("k-4",
	            "{\"from\":\"A\",\"to\":\"B\",\"amount\":1,\"at\":\"2030-01-01T00:00:00.000Z\"}",
	            "rejected 422", "TOO_LATE");
	expect_rule("k-5", "{\"from\":\"A\",\"to\":\"B\",\"amount\":1,\"due\":\"2019-12-31\"}",
	            "rejected 422", "TOO_OLD");
	assert_count(0, "payment");
	assert_count(0, "ibid.event");
	assert_count(0, "ibid.audit");
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command where state = 'REJECTED'"),
	                 5);
}

static void a_rule_that_is_not_met_lets_the_command_run(void **state)
{
	(void)state;
	bed_expect(ibid, "pay", "k-1",
	           "{\"from\":\"A\",\"to\":\"B\",\"amount\":10.0,\"limit\":10,\"due\":\"2020-01-01\","
	           "\"at\":\"2029-12-31T23:59:59.999999Z\"}",
	           "executed 201");
	bed_expect(ibid, "pay", "k-2", "{\"from\":\"A\",\"to\":\"a\",\"amount\":0.01}", "executed 201");
}

/* The class of the rule says whether the corrected payload may take the key. */
static void a_refusal_of_a_rule_is_one_of_its_class(void **state) /* I2 */
{
	(void)state;
	ibid_close(ibid);
	bed_replace(&bed, "defaults.yaml", "validation: final", "validation: retry");
	bed_replace(&bed, "pay.yaml", "version: 1\n", "version: 2\n");
	bed_replace(&bed, "pay-free.yaml", "version: 1\n", "version: 2\n");
	bed_replace(&bed, "raise.yaml", "version: 1\n", "version: 2\n");
	bed_replace(&bed, "order.yaml", "version: 1\n", "version: 2\n");
	bed_replace(&bed, "emits-anyway.yaml", "version: 1\n", "version: 2\n");
	bed_replace(&bed, "computes.yaml", "version: 1\n", "version: 2\n");
	bed_replace(&bed, "answers.yaml", "version: 1\n", "version: 2\n");
	ibid = bed_ibid(&bed, NULL);
	expect_refused("pay", "k-1", "{\"from\":\"A\",\"to\":\"A\",\"amount\":1}", "rejected 422",
	               "SAME_ACCOUNT", "differ");
	bed_expect(ibid, "pay", "k-1", PAY, "executed 201");
	expect_refused("pay", "k-2", "{\"from\":\"A\",\"to\":\"B\",\"amount\":9,\"limit\":1}",
	               "rejected 409", "OVER_LIMIT", "");
}

/* ---- Rows ----------------------------------------------------------------------------------- */

static void another_number_of_rows_commits_nothing_and_fails(void **state)
{
	(void)state;
	expect_refused("raise", "k-1", "{\"account\":\"c\"}", "failed 500", "HANDLER_FAILED",
	               "statement 2 of raise.sql changed or returned 0 rows, and handler.rows of the "
	               "contract says 1");
	assert_count(0, "raised");
	assert_count(0, "ibid.audit");
	bed_exec(&bed, "insert into account (tenant, id, n) values ('t', 'c', 0)");
	bed_expect(ibid, "raise", "k-1", "{\"account\":\"c\"}", "executed 200"); /* a retry runs */
	bed_expect(ibid, "raise", "k-1", "{\"account\":\"c\"}", "replayed executed 200");
	assert_int_equal(bed_number(&bed, "select n from account where id = 'c'"), 1);
	assert_count(1, "raised");
}

/* ---- Uniqueness, races ---------------------------------------------------------------------- */

#define REFERENCED "{\"from\":\"A\",\"to\":\"B\",\"amount\":1,\"reference\":\"r-1\"}"

static void the_same_fact_under_a_new_key_is_linked(void **state) /* B09 */
{
	(void)state;
	bed_expect(ibid, "pay", "k-1", REFERENCED, "executed 201");
	bed_expect(ibid, "pay", "k-2", REFERENCED, "linked 200");
	assert_count(1, "payment");
	assert_count(1, "ibid.event");
}

enum { CALLERS = 20 };

struct caller {
	pthread_t thread;
	pthread_barrier_t *start;
	const char *operation, *key, *payload;
	char own_key[16], own_payload[96];
	enum ibid_decision decision;
	bool replayed;
};

static void *call(void *user)
{
	struct caller *caller = user;
	pthread_barrier_wait(caller->start);
	struct ibid_result *result = bed_submit(ibid, caller->operation, caller->key, caller->payload);
	caller->decision = ibid_result_decision(result);
	caller->replayed = ibid_result_replayed(result);
	ibid_result_free(result);
	return NULL;
}

static void call_all(struct caller callers[CALLERS])
{
	pthread_barrier_t start;
	pthread_barrier_init(&start, NULL, CALLERS);
	for (int i = 0; i < CALLERS; i++) {
		callers[i].start = &start;
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i].thread, NULL);
	pthread_barrier_destroy(&start);
}

static void of_twenty_at_once_one_is_executed(void **state) /* B12 */
{
	(void)state;
	static const char *const operations[] = {"pay", "pay-free"};
	for (size_t n = 0; n < sizeof operations / sizeof *operations; n++) {
		struct caller callers[CALLERS];
		int executed = 0;
		for (int i = 0; i < CALLERS; i++)
			callers[i] = (struct caller){.operation = operations[n], .key = "k-1", .payload = PAY};
		call_all(callers);
		for (int i = 0; i < CALLERS; i++) {
			executed += callers[i].decision == IBID_DECISION_EXECUTED && !callers[i].replayed;
			assert_true(callers[i].decision == IBID_DECISION_EXECUTED ||
			            callers[i].decision == IBID_DECISION_IN_PROGRESS);
		}
		assert_int_equal(executed, 1);
		assert_count((int64_t)n + 1, "payment");
		assert_count((int64_t)n + 1, "ibid.audit");
	}
	assert_count(3, "ibid.event"); /* pay-free makes two */
}

/* Whatever shares a transaction: who fails leaves the others alone, and one that was too early by a
 * version is rejected. */
static void neighbours_are_not_touched_by_what_fails(void **state)
{
	(void)state;
	struct caller callers[CALLERS];
	int executed = 0, rejected = 0, failed = 0;
	for (int i = 0; i < CALLERS; i++) {
		struct caller *caller = &callers[i];
		*caller = (struct caller){.key = caller->own_key, .payload = caller->own_payload};
		snprintf(caller->own_key, sizeof caller->own_key, "k-%d", i);
		switch (i % 4) {
		case 0: /* each is of the same version: one of them is right */
			caller->operation = "order";
			snprintf(caller->own_payload, sizeof caller->own_payload,
			         "{\"id\":\"o\",\"version\":1,\"key\":\"e-%d\"}", i);
			break;
		case 1: /* of an account that is not there */
			caller->operation = "raise";
			snprintf(caller->own_payload, sizeof caller->own_payload, "{\"account\":\"z\"}");
			break;
		case 2:
			caller->operation = "raise";
			snprintf(caller->own_payload, sizeof caller->own_payload, "{\"account\":\"a\"}");
			break;
		default:
			caller->operation = "pay-free";
			snprintf(caller->own_payload, sizeof caller->own_payload,
			         "{\"from\":\"A\",\"amount\":%d}", i);
		}
	}
	call_all(callers);
	for (int i = 0; i < CALLERS; i++) {
		executed += callers[i].decision == IBID_DECISION_EXECUTED;
		rejected += callers[i].decision == IBID_DECISION_REJECTED;
		failed += callers[i].decision == IBID_DECISION_FAILED;
	}
	assert_int_equal(executed, 11);
	assert_int_equal(rejected, 4);
	assert_int_equal(failed, 5);
	assert_int_equal(bed_number(&bed, "select n from account where id = 'a'"), 5);
	assert_count(5, "payment");
	assert_count(6, "raised"); /* by five that raise, and an order */
	assert_count(11, "ibid.event");
	assert_count(11, "ibid.audit");
	assert_int_equal(
	    bed_number(&bed, "select max(version) from ibid.event where aggregateid = 'A'"), 10);
}

/* ---- Refused when it is opened -------------------------------------------------------------- */

static void expect_unopened(const char *part)
{
	struct ibid_err err = {0};
	struct ibid *other = NULL;
	enum ibid_code code = ibid_open(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts),
	                                &other, &err);
	if (code != IBID_CONTRACT || !strstr(err.text, part))
		fail_msg("%s: %s", ibid_code_name(code), err.text);
}

static void a_script_that_does_not_fit_its_contract_is_refused(void **state)
{
	(void)state;
	bed_replace(&bed, "raise.yaml", "rows: [any, 1]", "rows: [1]");
	bed_replace(&bed, "raise.yaml", "version: 1", "version: 2");
	expect_unopened("raise.sql:1: handler.rows of raise.yaml has 1 numbers, and the script has 2 "
	                "statements");
	bed_replace(&bed, "raise.yaml", ", rows: [1]", "");
	bed_replace(&bed, "raise.yaml", "version: 2", "version: 3");
	expect_unopened("raise.sql:2: the contract declares the answer, and this statement may find no "
	                "row to change");
	bed_replace(&bed, "raise.yaml", "sql: raise.sql", "sql: raise.sql, rows: [any, 1]");
	bed_replace(&bed, "raise.yaml", "version: 3", "version: 4");
	bed_write(&bed, "pay-free.sql", "select 201 as status;\n");
	struct ibid_err err = {0};
	assert_int_equal(ibid_init(IBID_OPTIONS(.store = bed.url, .contracts = bed.contracts), &err),
	                 IBID_CONTRACT);
	if (!strstr(err.text,
	            "pay-free.sql:1: the contract declares the answer, and so does the script's "
	            "last statement"))
		fail_msg("%s", err.text);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(a_declared_answer_is_made_of_parameters_and_replayed_byte_for_byte),
	    TEST(the_first_caller_hears_the_body_that_is_not_kept),
	    TEST(another_payload_under_the_key_is_a_conflict),
	    TEST(a_script_may_leave_the_answer_and_still_make_the_events),
	    TEST(a_script_may_answer_and_leave_the_events),
	    TEST(a_declared_event_holds_each_parameter_in_its_own_type),
	    TEST(events_of_one_aggregate_follow_each_other),
	    TEST(a_declared_event_is_held_to_its_contract),
	    TEST(a_script_emits_nothing_where_the_contract_does),
	    TEST(a_declared_version_is_the_next_or_a_conflict),
	    TEST(a_declared_rule_rejects_before_anything_is_done),
	    TEST(a_rule_that_is_not_met_lets_the_command_run),
	    TEST(a_refusal_of_a_rule_is_one_of_its_class),
	    TEST(another_number_of_rows_commits_nothing_and_fails),
	    TEST(the_same_fact_under_a_new_key_is_linked),
	    TEST(of_twenty_at_once_one_is_executed),
	    TEST(neighbours_are_not_touched_by_what_fails),
	    TEST(a_script_that_does_not_fit_its_contract_is_refused),
	};
#undef TEST
	bed_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
