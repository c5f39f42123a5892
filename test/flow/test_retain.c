/* SPDX-License-Identifier: Apache-2.0 */
/* test_retain.c -- what becomes of commands after their time, through the public surface, on both
 * stores. The clock is moved, never waited for. */
#include "support/bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/contracts"

static const int64_t DAY_US = 86400000000, NOW_US = 1790000000000000;

static struct bed bed;
static struct ibid *ibid;
static struct env_virtual clock_env;

/* Two kinds of payment that may run again: with its body kept, and by the short way without. */
static void write_contracts(void)
{
	static const char form[] = "command: %s\n"
	                           "version: 1\n"
	                           "fact: a payment whose key is forgotten after ten days\n"
	                           "key: { retain: 10d, after_expiry: run-again }\n"
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
	snprintf(text, sizeof text, form, "again-full", "full");
	bed_write(&bed, "again-full.yaml", text);
	snprintf(text, sizeof text, form, "again-brief", "reference");
	bed_write(&bed, "again-brief.yaml", text);
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
	bed_exec(&bed, "update ibid.command set state = 'UNKNOWN', audit_id = null where key = 'unknown'");
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
	};
	return cmocka_run_group_tests_name("retain", tests, NULL, NULL);
}
