/* SPDX-License-Identifier: Apache-2.0 */
/* test_kinds.c -- references, journal entries and state transitions, called by handler scripts. */
#include "support/bed.h"

#include "base/decimal.h"
#include "base/str.h"

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

/* ---- The journal: B14 ----------------------------------------------------------------------- */

#define LINE(account, direction, amount, currency)                                                 \
	"{\"account\":\"" account "\",\"direction\":\"" direction "\",\"amount\":" amount              \
	",\"currency\":\"" currency "\"}"
#define POST(source, lines) "{\"source\":\"" source "\",\"lines\":[" lines "]}"
#define TEN_EUR             LINE("cash", "DEBIT", "10.00", "EUR") "," LINE("sales", "CREDIT", "10", "EUR")

static void a_balanced_group_is_appended_with_all_its_lines(void **state) /* B14 */
{
	(void)state;
	struct ibid_result *result = bed_submit(
	    ibid, "post", "k-1",
	    POST("invoice 7", TEN_EUR "," LINE("cash", "DEBIT", "0.000000000000000001", "USD") "," LINE(
	                          "sales", "CREDIT", "\"0.000000000000000001\"", "USD")));
	assert_string_equal(bed_say(result), "executed 201");
	assert_int_equal(
	    bed_number(&bed,
	               "select count(*) from ibid.journal_group g join ibid.journal_line l "
	               "on l.tenant = g.tenant and l.group_id = g.id "
	               "where cast(g.id as text) = '%s' and g.source = 'invoice 7' and "
	               "cast(g.command_id as text) = '%s'",
	               ibid_result_resource_id(result), ibid_result_command_id(result)),
	    4);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.journal_line where cast(amount as "
	                                  "text) = '0.000000000000000001' and currency = 'USD'"),
	                 2);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.journal_line where "
	                                  "cast(amount as text) = '10' and line in (1, 2)"),
	                 2);
	ibid_result_free(result);
}

static void a_group_without_a_source_has_that_of_its_command(void **state) /* B14 */
{
	(void)state;
	bed_expect(ibid, "post", "k-1", "{\"lines\":[" TEN_EUR "]}", "executed 201");
	bed_expect(ibid, "post", "k-2", "{\"lines\":[" TEN_EUR "]}", "executed 201");
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.journal_group "
	                                  "where source = cast(command_id as text)"),
	                 2);
}

static void a_group_that_does_not_balance_is_rejected_with_the_difference(void **state) /* B14 */
{
	(void)state;
	expect_rejected(
	    "post", "k-1",
	    POST("s", LINE("a", "DEBIT", "10", "EUR") "," LINE("b", "CREDIT", "9.99", "EUR")),
	    "UNBALANCED", 422, "EUR: debits are 10, credits 9.99, the difference is 0.01");
	expect_rejected("post", "k-2",
	                POST("s", LINE("a", "DEBIT", "10", "EUR") "," LINE("b", "CREDIT", "10", "USD")),
	                "UNBALANCED", 422, "EUR: debits are 10, credits 0, the difference is 10");
	expect_rejected("post", "k-3", POST("s", TEN_EUR "," LINE("b", "CREDIT", "1e-18", "USD")),
	                "UNBALANCED", 422, "difference is -0.000000000000000001");
	/* A double holds neither of these; their difference has more digits than a decimal. */
	expect_rejected(
	    "post", "k-4",
	    POST("s", LINE("a", "DEBIT", "12345678901234567890123456789012345678", "EUR") "," LINE(
	                  "b", "CREDIT", "12345678901234567890123456789012345677", "EUR")),
	    "UNBALANCED", 422, "the difference is 1");
	expect_rejected(
	    "post", "k-5",
	    POST("s", LINE("a", "DEBIT", "1e37", "EUR") "," LINE("b", "CREDIT", "0.1", "EUR")),
	    "UNBALANCED", 422, "credits 0.1");
	assert_int_equal(rows("ibid.journal_group"), 0);
	assert_int_equal(rows("ibid.journal_line"), 0);
	assert_int_equal(rows("attempt"), 0);
}

static void lines_that_are_none_are_rejected_with_their_number(void **state) /* B14 */
{
	(void)state;
	static const struct {
		const char *lines, *reason, *part;
	} bad[] = {
	    {"{}", "BAD_LINES", "array"},
	    {"[]", "EMPTY_GROUP", "debit"},
	    {"[7]", "BAD_LINES", "line 1"},
	    {"[{\"account\":\"a\",\"direction\":\"DEBIT\",\"amount\":1,\"currency\":\"EUR\",\"memo\":1}"
	     "]",
	     "BAD_LINES", "line 1"},
	    {"[" TEN_EUR "," LINE("", "DEBIT", "1", "EUR") "]", "BAD_ACCOUNT", "line 3"},
	    {"[{\"direction\":\"DEBIT\",\"amount\":1,\"currency\":\"EUR\"}]", "BAD_ACCOUNT", "line 1"},
	    {"[" LINE("a", "debit", "1", "EUR") "]", "BAD_DIRECTION", "DEBIT or CREDIT"},
	    {"[" LINE("a", "DEBIT", "1", "eur") "]", "BAD_CURRENCY", "three letters"},
	    {"[" LINE("a", "DEBIT", "1", "EURO") "]", "BAD_CURRENCY", "three letters"},
	    {"[" LINE("a", "DEBIT", "0", "EUR") "]", "BAD_AMOUNT", "above 0"},
	    {"[" LINE("a", "DEBIT", "-1", "EUR") "]", "BAD_AMOUNT", "above 0"},
	    {"[" LINE("a", "DEBIT", "null", "EUR") "]", "BAD_AMOUNT", "above 0"},
	    {"[" LINE("a", "DEBIT", "\"NaN\"", "EUR") "]", "BAD_AMOUNT", "above 0"},
	    {"[" LINE("a", "DEBIT", "\" 1\"", "EUR") "]", "BAD_AMOUNT", "above 0"},
	    {"[" LINE("a", "DEBIT", "\"+1\"", "EUR") "]", "BAD_AMOUNT", "above 0"},
	    {"[" LINE("a", "DEBIT", "\"01\"", "EUR") "]", "BAD_AMOUNT", "above 0"},
	    {"[" LINE("a", "DEBIT", "\"1_000\"", "EUR") "]", "BAD_AMOUNT", "above 0"},
	    {"[" LINE("a", "DEBIT", "\"0x10\"", "EUR") "]", "BAD_AMOUNT", "above 0"},
	    {"[" LINE("a", "DEBIT", "\"1e999999999\"", "EUR") "]", "BAD_AMOUNT", "38 digits"},
	    {"[" LINE("a", "DEBIT", "1e38", "EUR") "]", "BAD_AMOUNT", "38 digits"},
	    {"[" LINE("a", "DEBIT", "1e-19", "EUR") "]", "BAD_AMOUNT", "38 digits"},
	    {"[" LINE("a", "DEBIT", "6e37", "EUR") "," LINE("a", "DEBIT", "6e37", "EUR") "]",
	     "BAD_AMOUNT", "EUR: the amounts add up to more than 38 digits"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char key[16], payload[512];
		snprintf(key, sizeof key, "k-%zu", i);
		snprintf(payload, sizeof payload, "{\"source\":\"s\",\"lines\":%s}", bad[i].lines);
		expect_rejected("post", key, payload, bad[i].reason, 422, bad[i].part);
	}
	expect_rejected("post", "k-source", POST("", TEN_EUR), "BAD_SOURCE", 422, "255 bytes");
	assert_int_equal(rows("ibid.journal_group"), 0);
}

static void a_source_is_posted_once_whatever_the_key(void **state) /* B14 */
{
	(void)state;
	struct ibid_result *first = bed_submit(ibid, "post", "k-1", POST("invoice 7", TEN_EUR));
	/* Other notation, other order: the same lines. */
	struct ibid_result *again = bed_submit(
	    ibid, "post", "k-2",
	    POST("invoice 7",
	         LINE("sales", "CREDIT", "1e1", "EUR") "," LINE("cash", "DEBIT", "\"10.0\"", "EUR")));
	assert_string_equal(bed_say(again), "executed 201");
	assert_string_equal(ibid_result_resource_id(again), ibid_result_resource_id(first));
	ibid_result_free(again);
	ibid_result_free(first);
	expect_rejected("post", "k-3",
	                POST("invoice 7", LINE("cash", "DEBIT", "11", "EUR") "," LINE("sales", "CREDIT",
	                                                                              "11", "EUR")),
	                "SOURCE_POSTED", 409, "invoice 7 was posted as group");
	expect_rejected("post", "k-4", POST("invoice 7", TEN_EUR "," TEN_EUR), "SOURCE_POSTED", 409,
	                "other lines");
	expect_rejected("post", "k-5",
	                "{\"source\":\"invoice 7\",\"date\":\"2001-01-01\",\"lines\":[" TEN_EUR "]}",
	                "SOURCE_POSTED", 409, "another date");
	bed_expect(ibid, "post", "k-6", POST("invoice 8", TEN_EUR), "executed 201");
	assert_int_equal(rows("ibid.journal_group"), 2);
	assert_int_equal(rows("ibid.journal_line"), 4);
}

static void a_posting_date_is_kept_and_compared_where_it_is_given(void **state) /* B14 */
{
	(void)state;
	const char *payload =
	    "{\"source\":\"s\",\"date\":\"2026-02-28\",\"text\":\"rent\",\"lines\":[" TEN_EUR "]}";
	bed_expect(ibid, "post", "k-1", payload, "executed 201");
	bed_expect(ibid, "post", "k-2", payload, "executed 201");
	bed_expect(ibid, "post", "k-3", POST("s", TEN_EUR), "executed 201");
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.journal_group where cast(posting_date "
	                            "as text) = '2026-02-28' and description = 'rent'"),
	                 1);
	assert_int_equal(rows("ibid.journal_group"), 1);
}

/* Numbers that are the same in every run. */
static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

static struct decimal random_amount(unsigned *seed)
{
	char text[64];
	struct decimal value;
	struct ibid_err err;
	unsigned scale = next_random(seed) % 19, digits = 1 + next_random(seed) % (37 - scale);
	size_t size = 0;
	text[size++] = (char)('1' + next_random(seed) % 9);
	for (unsigned i = 1; i < digits; i++)
		text[size++] = (char)('0' + next_random(seed) % 10);
	if (scale)
		text[size++] = '.';
	for (unsigned i = 0; i < scale; i++)
		text[size++] = (char)('0' + next_random(seed) % 10);
	assert_int_equal(decimal_read(text, size, &value, &err), IBID_OK);
	return value;
}

/* Add random debits and the one credit that balances them, plus `surplus`. False when the sum has
 * more digits than a decimal. */
static bool add_side(struct str *out, const char *currency, const char *surplus, unsigned *seed)
{
	struct decimal total = {.scale = 0}, more;
	struct ibid_err err;
	char text[DECIMAL_TEXT_MAX];
	for (unsigned i = 1 + next_random(seed) % 4; i > 0; i--) {
		struct decimal amount = random_amount(seed);
		if (decimal_add(total, amount, &total, &err))
			return false;
		decimal_write(amount, text);
		str_addf(out, LINE("a%u", "DEBIT", "%s", "%s") ",", i, text, currency);
	}
	assert_int_equal(decimal_read(surplus, strlen(surplus), &more, &err), IBID_OK);
	if (decimal_add(total, more, &total, &err))
		return false;
	decimal_write(total, text);
	str_addf(out, LINE("b", "CREDIT", "%s", "%s"), text, currency);
	return true;
}

static void random_groups_balance_or_are_rejected_to_the_last_digit(void **state) /* B14 */
{
	(void)state;
	unsigned seed = 20261116;
	int accepted = 0, rejected = 0;
	for (int i = 0; i < 200; i++) {
		struct str payload = STR_INIT(1 << 16);
		char key[16];
		bool balanced = next_random(&seed) % 2;
		snprintf(key, sizeof key, "k-%d", i);
		str_addf(&payload, "{\"source\":\"s%d\",\"lines\":[", i);
		bool fits = add_side(&payload, "EUR", "0", &seed);
		str_addc(&payload, ',');
		fits = fits && add_side(&payload, "JPY", balanced ? "0" : "0.000000000000000001", &seed);
		str_adds(&payload, "]}");
		if (fits && balanced)
			bed_expect(ibid, "post", key, str_text(&payload), "executed 201");
		else if (fits)
			expect_rejected("post", key, str_text(&payload), "UNBALANCED", 422, "JPY");
		accepted += fits && balanced;
		rejected += fits && !balanced;
		str_release(&payload);
	}
	assert_true(accepted > 20 && rejected > 20);
	assert_int_equal(rows("ibid.journal_group"), accepted);
}

static void of_commands_that_post_one_source_at_once_one_appends(void **state) /* B14 */
{
	(void)state;
	struct runner runners[RUNNERS];
	race(runners, "post", "{\"source\":\"same\",\"lines\":[" TEN_EUR "],\"text\":\"from %d\"}");
	assert_int_equal(count_said(runners, "executed 201", ""), RUNNERS);
	assert_int_equal(rows("ibid.journal_group"), 1);
	assert_int_equal(rows("ibid.journal_line"), 2);
}

static void of_commands_that_post_one_source_differently_at_once_one_wins(void **state) /* B14 */
{
	(void)state;
	struct runner runners[RUNNERS];
	race(runners, "post",
	     "{\"source\":\"same\",\"lines\":[" LINE("a", "DEBIT", "%1$d.5", "EUR") "," LINE(
	         "b", "CREDIT", "%1$d.5", "EUR") "]}");
	assert_int_equal(count_said(runners, "executed 201", ""), 1);
	assert_int_equal(count_said(runners, "rejected 409", "SOURCE_POSTED"), RUNNERS - 1);
	assert_int_equal(rows("ibid.journal_line"), 2);
}

static void posted_lines_are_never_edited_even_by_the_owner(void **state) /* B14, I3 */
{
	(void)state;
	bed_expect(ibid, "post", "k-1", POST("s", TEN_EUR), "executed 201");
	static const char *const edits[] = {
	    "update ibid.journal_line set amount = '11'",
	    "delete from ibid.journal_line",
	    "update ibid.journal_group set source = 't'",
	    "delete from ibid.journal_group",
	};
	for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
		bed_refuses(&bed, edits[i], "never");
	if (bed.kind == BED_SQLITE) {
		bed_refuses(&bed,
		            "insert or replace into ibid.journal_group "
		            "select tenant, '00000000-0000-0000-0000-000000000000', source, "
		            "command_id, posting_date, 'edited', 0 from ibid.journal_group",
		            "never");
		bed_refuses(&bed,
		            "insert or replace into ibid.journal_line select tenant, "
		            "group_id, line, account, direction, '11', currency "
		            "from ibid.journal_line",
		            "never");
	} else {
		bed_refuses(&bed, "truncate ibid.journal_line", "never");
		bed_refuses(&bed, "truncate ibid.journal_group cascade", "never");
	}
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.journal_group g join "
	                            "ibid.journal_line l on l.group_id = g.id where g.source = 's' "
	                            "and cast(l.amount as text) = '10'"),
	                 2);
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
	    TEST(a_balanced_group_is_appended_with_all_its_lines),
	    TEST(a_group_without_a_source_has_that_of_its_command),
	    TEST(a_group_that_does_not_balance_is_rejected_with_the_difference),
	    TEST(lines_that_are_none_are_rejected_with_their_number),
	    TEST(a_source_is_posted_once_whatever_the_key),
	    TEST(a_posting_date_is_kept_and_compared_where_it_is_given),
	    TEST(random_groups_balance_or_are_rejected_to_the_last_digit),
	    TEST(of_commands_that_post_one_source_at_once_one_appends),
	    TEST(of_commands_that_post_one_source_differently_at_once_one_wins),
	    TEST(posted_lines_are_never_edited_even_by_the_owner),
	};
	return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}
