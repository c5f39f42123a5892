/* SPDX-License-Identifier: Apache-2.0 */
/* test_kinds.c -- references, journal entries and state transitions, called by handler scripts. */
#include "support/bed.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/kinds"

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

/* Submit and expect a rejection: its reason, status and a part of its sentence. */
static void expect_rejected(const char *operation, const char *key, const char *payload,
                            const char *reason, int status, const char *part)
{
	struct ibid_result *result = bed_submit(ibid, operation, key, payload);
	const char *said = ibid_result_reason(result), *text = ibid_result_text(result);
	if (ibid_result_decision(result) != IBID_DECISION_REJECTED || !said ||
	    strcmp(said, reason) != 0 || !text || !strstr(text, part))
		fail_msg("%s: %s, %s: %s", payload, bed_say(result), said ? said : "-", text ? text : "-");
	assert_int_equal(ibid_result_status(result), status);
	ibid_result_free(result);
}

/* ---- Many at once --------------------------------------------------------------------------- */

enum { RUNNERS = 8 };

struct runner {
	pthread_t thread;
	pthread_barrier_t *start;
	const char *operation;
	char key[32], payload[512], said[64], reason[64];
};

static void *submit_one(void *user)
{
	struct runner *runner = user;
	pthread_barrier_wait(runner->start);
	struct ibid_result *result = bed_submit(ibid, runner->operation, runner->key, runner->payload);
	snprintf(runner->said, sizeof runner->said, "%s", bed_say(result));
	const char *reason = ibid_result_reason(result);
	snprintf(runner->reason, sizeof runner->reason, "%s", reason ? reason : "");
	ibid_result_free(result);
	return NULL;
}

/* All of them start together, under keys of their own; `format` is given the number of each. */
static void race(struct runner runners[RUNNERS], const char *operation, const char *format)
{
	pthread_barrier_t start;
	pthread_barrier_init(&start, NULL, RUNNERS);
	for (int i = 0; i < RUNNERS; i++) {
		struct runner *runner = &runners[i];
		*runner = (struct runner){.start = &start, .operation = operation};
		snprintf(runner->key, sizeof runner->key, "race-%d", i);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(runner->payload, sizeof runner->payload, format, i);
#pragma GCC diagnostic pop
		assert_int_equal(pthread_create(&runner->thread, NULL, submit_one, runner), 0);
	}
	for (int i = 0; i < RUNNERS; i++)
		pthread_join(runners[i].thread, NULL);
	pthread_barrier_destroy(&start);
}

static int count_said(const struct runner runners[RUNNERS], const char *said, const char *reason)
{
	int count = 0;
	for (int i = 0; i < RUNNERS; i++)
		count += strcmp(runners[i].said, said) == 0 && strcmp(runners[i].reason, reason) == 0;
	return count;
}

/* ---- External references: B17 --------------------------------------------------------------- */

#define LINK(source, external, type, id)                                                           \
	"{\"source\":\"" source "\",\"external\":\"" external "\",\"type\":\"" type "\",\"id\":\"" id  \
	"\"}"

static void a_reference_is_found_from_either_side(void **state) /* B17 */
{
	(void)state;
	bed_expect(ibid, "link", "k-1", LINK("sap", "4711", "case", "c-1"), "executed 200");
	struct ibid_result *result = bed_submit(ibid, "link", "k-2", LINK("crm", "x y", "case", "c-1"));
	assert_string_equal(bed_say(result), "executed 200");
	assert_string_equal(ibid_result_body(result),
	                    "{\"called\":[{\"external_id\":\"x y\",\"source_system\":\"crm\"},"
	                    "{\"external_id\":\"4711\",\"source_system\":\"sap\"}],"
	                    "\"is\":{\"resource_id\":\"c-1\",\"resource_type\":\"case\"}}");
	ibid_result_free(result);
	assert_int_equal(rows("ibid.external_reference"), 2);
}

static void the_same_link_again_is_success_and_adds_nothing(void **state) /* B17 */
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		char key[8];
		snprintf(key, sizeof key, "k-%d", i);
		bed_expect(ibid, "link", key, LINK("sap", "4711", "case", "c-1"), "executed 200");
	}
	assert_int_equal(rows("ibid.external_reference"), 1);
	assert_int_equal(rows("attempt"), 3);
}

static void an_external_id_of_another_resource_is_rejected_and_names_it(void **state) /* B17 */
{
	(void)state;
	bed_expect(ibid, "link", "k-1", LINK("sap", "4711", "case", "c-1"), "executed 200");
	expect_rejected("link", "k-2", LINK("sap", "4711", "case", "c-2"), "REFERENCE_TAKEN", 409,
	                "4711 of sap is case c-1 already");
	expect_rejected("link", "k-3", LINK("sap", "4711", "order", "c-1"), "REFERENCE_TAKEN", 409,
	                "case c-1");
	expect_rejected("link", "k-4", LINK("sap", "4712", "case", "c-1"), "RESOURCE_LINKED", 409,
	                "case c-1 is 4711 of sap already");
	bed_expect(ibid, "link", "k-5", LINK("Sap", "4711", "case", "c-2"), "executed 200");
	assert_int_equal(rows("ibid.external_reference"), 2);
	assert_int_equal(rows("attempt"), 2); /* a rejection leaves nothing of its script */
}

static void names_that_are_missing_or_too_long_are_rejected(void **state) /* B17 */
{
	(void)state;
	char payload[600], name[257];
	memset(name, 'n', 256);
	name[256] = '\0';
	expect_rejected("link", "k-1", LINK("", "4711", "case", "c-1"), "BAD_REFERENCE", 422,
	                "source system");
	expect_rejected("link", "k-2", "{\"source\":\"sap\",\"type\":\"case\",\"id\":\"c-1\"}",
	                "BAD_REFERENCE", 422, "external id");
	snprintf(payload, sizeof payload,
	         "{\"source\":\"sap\",\"external\":\"%s\",\"type\":\"case\",\"id\":\"c-1\"}", name);
	expect_rejected("link", "k-3", payload, "BAD_REFERENCE", 422, "external id");
	name[255] = '\0';
	snprintf(payload, sizeof payload,
	         "{\"source\":\"sap\",\"external\":\"%s\",\"type\":\"case\",\"id\":\"c-1\"}", name);
	bed_expect(ibid, "link", "k-4", payload, "executed 200");
	assert_int_equal(rows("ibid.external_reference"), 1);
}

static void tenants_have_references_of_their_own(void **state) /* B17, I9 */
{
	(void)state;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	bed_expect(ibid, "link", "k-1", LINK("sap", "4711", "case", "c-1"), "executed 200");
	assert_int_equal(ibid_submit(ibid,
	                             IBID_COMMAND(.tenant = "other", .client = "c", .actor = "a",
	                                          .operation = "link", .key = "k-1",
	                                          .payload = LINK("sap", "4711", "case", "c-2")),
	                             &result, &err),
	                 IBID_OK);
	assert_string_equal(bed_say(result), "executed 200");
	assert_non_null(strstr(ibid_result_body(result), "\"c-2\""));
	ibid_result_free(result);
	assert_int_equal(rows("ibid.external_reference"), 2);
}

static void of_commands_that_link_one_id_at_once_one_wins(void **state) /* B17 */
{
	(void)state;
	struct runner runners[RUNNERS];
	race(runners, "link",
	     "{\"source\":\"sap\",\"external\":\"4711\",\"type\":\"case\",\"id\":\"c-%d\"}");
	assert_int_equal(count_said(runners, "executed 200", ""), 1);
	assert_int_equal(count_said(runners, "rejected 409", "REFERENCE_TAKEN"), RUNNERS - 1);
	assert_int_equal(rows("ibid.external_reference"), 1);
	assert_int_equal(rows("attempt"), 1);
}

int main(int argc, char **argv)
{
	bed_choose(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(a_reference_is_found_from_either_side),
	    TEST(the_same_link_again_is_success_and_adds_nothing),
	    TEST(an_external_id_of_another_resource_is_rejected_and_names_it),
	    TEST(names_that_are_missing_or_too_long_are_rejected),
	    TEST(tenants_have_references_of_their_own),
	    TEST(of_commands_that_link_one_id_at_once_one_wins),
	};
	return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}
