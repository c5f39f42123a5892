/* SPDX-License-Identifier: Apache-2.0 */
/* test_kinds.c -- references, journal entries and state transitions, called by handler scripts. */
#include "support/race.h"

#include "base/decimal.h"
#include "base/str.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <sqlite3.h>
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
	race(ibid, runners, "link",
	     "{\"source\":\"sap\",\"external\":\"4711\",\"type\":\"case\",\"id\":\"c-%d\"}");
	assert_int_equal(race_count(runners, "executed 200", ""), 1);
	assert_int_equal(race_count(runners, "rejected 409", "REFERENCE_TAKEN"), RUNNERS - 1);
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
	expect_rejected("post", "k-4",
	                "{\"source\":\"s\",\"date\":\"2026-03-01\",\"lines\":[" TEN_EUR "]}",
	                "SOURCE_POSTED", 409, "another date");
	expect_rejected("post", "k-5",
	                "{\"source\":\"t\",\"date\":\"0000-01-01\",\"lines\":[" TEN_EUR "]}",
	                "INVALID_PAYLOAD", 422, "/date"); /* no store's calendar decides */
	assert_int_equal(rows("ibid.journal_group"), 1);
}

/* PostgreSQL runs such a contract in one round trip. */
static void a_group_is_posted_alike_where_no_body_is_kept(void **state) /* B14 */
{
	(void)state;
	struct ibid_result *first = bed_submit(ibid, "post-brief", "k-1", POST("s", TEN_EUR));
	struct ibid_result *again = bed_submit(ibid, "post-brief", "k-2", POST("s", TEN_EUR));
	assert_string_equal(bed_say(again), "executed 201");
	assert_string_equal(ibid_result_resource_id(again), ibid_result_resource_id(first));
	ibid_result_free(again);
	ibid_result_free(first);
	bed_expect(ibid, "post-brief", "k-1", POST("s", TEN_EUR), "replayed executed 201");
	expect_rejected("post-brief", "k-3", POST("s", TEN_EUR "," TEN_EUR), "SOURCE_POSTED", 409,
	                "other lines");
	expect_rejected("post-brief", "k-4", POST("t", LINE("a", "DEBIT", "1", "EUR")), "UNBALANCED",
	                422, "the difference is 1");
	assert_int_equal(rows("ibid.journal_group"), 1);
	assert_int_equal(rows("attempt"), 2);
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
	race(ibid, runners, "post",
	     "{\"source\":\"same\",\"lines\":[" TEN_EUR "],\"text\":\"from %d\"}");
	assert_int_equal(race_count(runners, "executed 201", ""), RUNNERS);
	assert_int_equal(rows("ibid.journal_group"), 1);
	assert_int_equal(rows("ibid.journal_line"), 2);
}

static void of_commands_that_post_one_source_differently_at_once_one_wins(void **state) /* B14 */
{
	(void)state;
	struct runner runners[RUNNERS];
	race(ibid, runners, "post",
	     "{\"source\":\"same\",\"lines\":[" LINE("a", "DEBIT", "%1$d.5", "EUR") "," LINE(
	         "b", "CREDIT", "%1$d.5", "EUR") "]}");
	assert_int_equal(race_count(runners, "executed 201", ""), 1);
	assert_int_equal(race_count(runners, "rejected 409", "SOURCE_POSTED"), RUNNERS - 1);
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

static void a_group_that_was_posted_is_never_added_to(void **state) /* B14 */
{
	(void)state;
	bed_expect(ibid, "post", "k-1", POST("s", TEN_EUR), "executed 201");
	bed_refuses(&bed,
	            "insert into ibid.journal_line select tenant, group_id, 9, account, direction, 1, "
	            "currency from ibid.journal_line where direction = 'DEBIT'",
	            "whole");
	bed_refuses(&bed,
	            "insert into ibid.journal_line select tenant, group_id, line + 9, account, "
	            "direction, amount, currency from ibid.journal_line",
	            "whole");
	bed_refuses(
	    &bed,
	    "with g as (insert into ibid.journal_group select tenant, gen_random_uuid(), 'other', "
	    "command_id, posting_date, null, at from ibid.journal_group returning *) "
	    "insert into ibid.journal_line select tenant, id, 1, 'a', 'DEBIT', 1, 'EUR' from g",
	    "whole");
	assert_int_equal(rows("ibid.journal_line"), 2);
}

/* ---- State transitions: B13 ----------------------------------------------------------------- */

#define MOVE(subject, to) "{\"subject\":\"" subject "\",\"to\":\"" to "\"}"
#define MOVE_WITH(subject, to, attributes)                                                         \
	"{\"subject\":\"" subject "\",\"to\":\"" to "\",\"attributes\":" attributes "}"
#define MOVE_AT(subject, to, expected)                                                             \
	"{\"subject\":\"" subject "\",\"to\":\"" to "\",\"expected\":" expected "}"

static void expect_body(const char *operation, const char *key, const char *payload,
                        const char *body)
{
	struct ibid_result *result = bed_submit(ibid, operation, key, payload);
	const char *said = ibid_result_body(result);
	if (ibid_result_decision(result) != IBID_DECISION_EXECUTED)
		fail_msg("%s: %s: %s", payload, bed_say(result), ibid_result_text(result));
	assert_string_equal(said ? said : "", body);
	ibid_result_free(result);
}

static void a_subject_moves_as_its_machine_allows_and_each_move_is_kept(void **state) /* B13 */
{
	(void)state;
	expect_body("move", "k-1", MOVE("c-1", "OPEN"),
	            "{\"from\":\"\",\"moved\":true,\"state\":\"OPEN\",\"version\":1}");
	expect_body("move", "k-2", MOVE("c-1", "ESCALATED"),
	            "{\"from\":\"OPEN\",\"moved\":true,\"state\":\"ESCALATED\",\"version\":2}");
	expect_body("move", "k-3", MOVE_WITH("c-1", "CLOSED", "{\"reason\":\"paid\"}"),
	            "{\"from\":\"ESCALATED\",\"moved\":true,\"state\":\"CLOSED\",\"version\":3}");
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.machine_state where tenant = 't' and "
	                            "machine = 'case' and subject_id = 'c-1' and state = 'CLOSED' and "
	                            "version = 3"),
	                 1);
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.machine_history h join ibid.command c "
	                            "on c.tenant = h.tenant and c.id = h.command_id where "
	                            "(h.version = 1 and h.from_state = '' and c.key = 'k-1') or "
	                            "(h.version = 2 and h.to_state = 'ESCALATED' and c.key = 'k-2') or "
	                            "(h.version = 3 and h.from_state = 'ESCALATED' and c.key = 'k-3')"),
	                 3);
	assert_int_equal(rows("ibid.machine_history"), 3);
	assert_int_equal(rows("ibid.audit"), 3); /* one fact per accepted move */
}

static void a_move_that_is_not_allowed_is_rejected_and_names_both_states(void **state) /* B13 */
{
	(void)state;
	expect_rejected("move", "k-1", MOVE("c-1", "CLOSED"), "NOT_ALLOWED", 409,
	                "case c-1 may not move from nothing to CLOSED");
	bed_expect(ibid, "move", "k-2", MOVE("c-1", "OPEN"), "executed 200");
	bed_expect(ibid, "move", "k-3", MOVE("c-1", "CLOSED"), "executed 200");
	expect_rejected("move", "k-4", MOVE("c-1", "ESCALATED"), "NOT_ALLOWED", 409,
	                "case c-1 may not move from CLOSED to ESCALATED");
	expect_rejected("move", "k-5", MOVE("c-1", "closed"), "NOT_ALLOWED", 409, "to closed");
	expect_rejected("move", "k-6", MOVE("c-1", ""), "BAD_STATE", 422, "255 bytes");
	expect_rejected("move", "k-7", "{\"to\":\"OPEN\"}", "BAD_SUBJECT", 422, "255 bytes");
	assert_int_equal(rows("ibid.machine_history"), 2);
	assert_int_equal(rows("attempt"), 2);
}

static void a_duplicate_is_already_there_only_if_its_attributes_match(void **state) /* B13 */
{
	(void)state;
	bed_expect(ibid, "move", "k-1", MOVE("c-1", "OPEN"), "executed 200");
	bed_expect(ibid, "move", "k-2",
	           MOVE_WITH("c-1", "CLOSED", "{\"reason\":\"A\",\"by\":{\"x\":1.0,\"y\":[null]}}"),
	           "executed 200");
	expect_body("move", "k-3",
	            MOVE_WITH("c-1", "CLOSED", "{\"by\":{\"y\":[null],\"x\":1},\"reason\":\"A\"}"),
	            "{\"from\":\"CLOSED\",\"moved\":false,\"state\":\"CLOSED\",\"version\":2}");
	expect_rejected("move", "k-4", MOVE_WITH("c-1", "CLOSED", "{\"reason\":\"B\"}"),
	                "ALREADY_OTHERWISE", 409, "case c-1 is CLOSED already, with other attributes");
	expect_rejected("move", "k-5", MOVE("c-1", "CLOSED"), "ALREADY_OTHERWISE", 409, "CLOSED");
	assert_int_equal(rows("ibid.machine_history"), 2);
}

static void a_move_to_the_same_state_is_one_where_the_machine_says_so(void **state) /* B13 */
{
	(void)state;
	bed_expect(ibid, "move", "k-1", MOVE("c-1", "OPEN"), "executed 200");
	bed_expect(ibid, "move", "k-2", MOVE_WITH("c-1", "ASSIGNED", "{\"to\":\"ann\"}"),
	           "executed 200");
	expect_body("move", "k-3", MOVE_WITH("c-1", "ASSIGNED", "{\"to\":\"ann\"}"),
	            "{\"from\":\"ASSIGNED\",\"moved\":false,\"state\":\"ASSIGNED\",\"version\":2}");
	expect_body("move", "k-4", MOVE_WITH("c-1", "ASSIGNED", "{\"to\":\"bob\"}"),
	            "{\"from\":\"ASSIGNED\",\"moved\":true,\"state\":\"ASSIGNED\",\"version\":3}");
}

static void a_version_that_is_expected_must_be_the_one_before_the_move(void **state) /* B13 */
{
	(void)state;
	expect_rejected("move", "k-1", MOVE_AT("c-1", "OPEN", "1"), "VERSION_CONFLICT", 409,
	                "case c-1 is at version 0; the command expects 1");
	bed_expect(ibid, "move", "k-2", MOVE_AT("c-1", "OPEN", "0"), "executed 200");
	bed_expect(ibid, "move", "k-3", MOVE_AT("c-1", "ASSIGNED", "1"), "executed 200");
	/* The same intent again, as it was sent; and from somebody who has seen the move. */
	expect_body("move", "k-4", MOVE_AT("c-1", "ASSIGNED", "1"),
	            "{\"from\":\"ASSIGNED\",\"moved\":false,\"state\":\"ASSIGNED\",\"version\":2}");
	expect_body("move", "k-5", MOVE_AT("c-1", "ASSIGNED", "2"),
	            "{\"from\":\"ASSIGNED\",\"moved\":false,\"state\":\"ASSIGNED\",\"version\":2}");
	expect_rejected("move", "k-6", MOVE_AT("c-1", "ASSIGNED", "0"), "VERSION_CONFLICT", 409,
	                "expects 0");
	expect_rejected("move", "k-7", MOVE_AT("c-1", "CLOSED", "1"), "VERSION_CONFLICT", 409,
	                "is at version 2");
	assert_int_equal(rows("ibid.machine_history"), 2);
}

static void subjects_and_tenants_are_apart(void **state) /* B13, I9 */
{
	(void)state;
	struct ibid_result *result = NULL;
	struct ibid_err err = {0};
	bed_expect(ibid, "move", "k-1", MOVE("c-1", "OPEN"), "executed 200");
	bed_expect(ibid, "move", "k-2", MOVE("c-2", "OPEN"), "executed 200");
	assert_int_equal(
	    ibid_submit(ibid,
	                IBID_COMMAND(.tenant = "other", .client = "c", .actor = "a",
	                             .operation = "move", .key = "k-1", .payload = MOVE("c-1", "OPEN")),
	                &result, &err),
	    IBID_OK);
	assert_string_equal(ibid_result_body(result),
	                    "{\"from\":\"\",\"moved\":true,\"state\":\"OPEN\",\"version\":1}");
	ibid_result_free(result);
	assert_int_equal(rows("ibid.machine_state"), 3);
}

static void
of_first_moves_at_once_one_wins_and_the_others_are_judged_after_it(void **state) /* B13 */
{
	(void)state;
	struct runner runners[RUNNERS];
	race(ibid, runners, "move", "{\"machine\":\"first\",\"subject\":\"x\",\"to\":\"S%d\"}");
	assert_int_equal(race_count(runners, "executed 200", ""), 1);
	assert_int_equal(race_count(runners, "rejected 409", "NOT_ALLOWED"), RUNNERS - 1);
	assert_int_equal(rows("ibid.machine_history"), 1);
}

static void of_moves_at_once_one_wins_and_the_others_are_judged_after_it(void **state) /* B13 */
{
	(void)state;
	struct runner runners[RUNNERS];
	bed_expect(ibid, "move", "k-1", MOVE("c-1", "OPEN"), "executed 200");
	race(ibid, runners, "move",
	     "{\"subject\":\"c-1\",\"to\":\"CLOSED\",\"attributes\":{\"reason\":%d}}");
	assert_int_equal(race_count(runners, "executed 200", ""), 1);
	assert_int_equal(race_count(runners, "rejected 409", "ALREADY_OTHERWISE"), RUNNERS - 1);
	assert_int_equal(bed_number(&bed, "select version from ibid.machine_state"), 2);
	assert_int_equal(rows("ibid.machine_history"), 2);
}

static void all_of_many_moves_at_once_are_kept_where_each_is_allowed(void **state) /* B13 */
{
	(void)state;
	struct runner runners[RUNNERS];
	bed_expect(ibid, "move", "k-1", MOVE("c-1", "OPEN"), "executed 200");
	race(ibid, runners, "move",
	     "{\"subject\":\"c-1\",\"to\":\"ASSIGNED\",\"attributes\":{\"to\":%d}}");
	assert_int_equal(race_count(runners, "executed 200", ""), RUNNERS);
	assert_int_equal(bed_number(&bed, "select version from ibid.machine_state"), RUNNERS + 1);
	assert_int_equal(rows("ibid.machine_history"), RUNNERS + 1);
}

static void history_is_never_edited_even_by_the_owner(void **state) /* B13, I3 */
{
	(void)state;
	bed_expect(ibid, "move", "k-1", MOVE("c-1", "OPEN"), "executed 200");
	bed_refuses(&bed, "update ibid.machine_history set to_state = 'CLOSED'", "never");
	bed_refuses(&bed, "delete from ibid.machine_history", "never");
	if (bed.kind == BED_SQLITE)
		bed_refuses(&bed,
		            "insert or replace into ibid.machine_history select * from "
		            "ibid.machine_history",
		            "never");
	else
		bed_refuses(&bed, "truncate ibid.machine_history", "never");
	assert_int_equal(rows("ibid.machine_history"), 1);
}

static void what_is_allowed_is_said_by_the_schema_only(void **state) /* B13 */
{
	(void)state;
	struct ibid_result *result = bed_submit(ibid, "define", "k-1", "{}");
	assert_int_equal(ibid_result_decision(result), IBID_DECISION_FAILED);
	assert_non_null(strstr(ibid_result_text(result), "belongs to the schema"));
	ibid_result_free(result);
	result = bed_submit(ibid, "move", "k-2",
	                    "{\"machine\":\"nobody\",\"subject\":\"x\",\"to\":\"OPEN\"}");
	assert_int_equal(ibid_result_decision(result), IBID_DECISION_FAILED);
	assert_non_null(strstr(ibid_result_text(result), "no machine nobody is defined"));
	ibid_result_free(result);
	result = bed_submit(
	    ibid, "move", "k-4",
	    "{\"machine\":\"nobody\",\"subject\":\"x\",\"to\":\"OPEN\",\"expected\":5}");
	assert_int_equal(ibid_result_decision(result), IBID_DECISION_FAILED);
	ibid_result_free(result);
	result = bed_submit(ibid, "move", "k-3", MOVE_WITH("c-1", "OPEN", "[1]"));
	assert_int_equal(ibid_result_decision(result), IBID_DECISION_FAILED);
	assert_non_null(strstr(ibid_result_text(result), "JSON object"));
	ibid_result_free(result);
	assert_int_equal(rows("ibid.machine_state"), 0);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.machine_move where machine = 'case'"), 8);
}

static void a_machine_that_is_none_stops_init(void **state) /* B13 */
{
	(void)state;
	static const struct {
		const char *arguments, *part;
	} bad[] = {
	    {"'', '[[\"\",\"A\"]]'", "1 to 255 bytes"},
	    {"null, '[[\"\",\"A\"]]'", "1 to 255 bytes"},
	    {"'m', '{}'", "JSON array"},
	    {"'m', null", "JSON array"},
	    {"'m', '[]'", "everything begins"},
	    {"'m', '[[\"A\",\"B\"]]'", "everything begins"},
	    {"'m', '[[\"\",\"\"]]'", "[from, to]"},
	    {"'m', '[[\"\",\"A\",\"B\"]]'", "[from, to]"},
	    {"'m', '[[\"\"]]'", "[from, to]"},
	    {"'m', '[[\"\",1]]'", "[from, to]"},
	};
	struct bed other;
	bed_open_empty(&other, FIXTURE);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ibid_err err = {0};
		char text[256];
		bool sqlite = other.kind == BED_SQLITE;
		snprintf(text, sizeof text, "select ibid%cdefine_machine(%s);\n", sqlite ? '_' : '.',
		         bad[i].arguments);
		bed_write(&other, sqlite ? "schema.sqlite.sql" : "schema.postgres.sql", text);
		assert_int_equal(
		    ibid_init(IBID_OPTIONS(.store = other.url, .contracts = other.contracts), &err),
		    IBID_CONTRACT);
		if (!strstr(err.text, bad[i].part))
			fail_msg("%s: %s", text, err.text);
	}
	bed_close(&other);
}

/* ---- From a callback ------------------------------------------------------------------------ */

/* Run a statement through the callback's handle; false with `error` when it was refused. */
static bool by_hand(struct ibid_work *work, const char *name, const char *arguments,
                    char error[256])
{
	char sql[512];
	bool sqlite = ibid_work_sqlite(work) != NULL;
	snprintf(sql, sizeof sql, "select ibid%c%s(%s)", sqlite ? '_' : '.', name, arguments);
	if (sqlite) {
		char *said = NULL;
		bool ok = sqlite3_exec(ibid_work_sqlite(work), sql, NULL, NULL, &said) == SQLITE_OK;
		snprintf(error, 256, "%s", said ? said : "");
		sqlite3_free(said);
		return ok;
	}
	PGresult *result = PQexec(ibid_work_postgres(work), sql);
	bool ok = PQresultStatus(result) == PGRES_TUPLES_OK;
	snprintf(error, 256, "%s %s", ok ? "" : PQresultErrorField(result, PG_DIAG_SQLSTATE),
	         PQresultErrorMessage(result));
	PQclear(result);
	return ok;
}

static enum ibid_code use_handle(struct ibid_work *work, void *user)
{
	char error[256];
	const char *external = user;
	char link[128];
	snprintf(link, sizeof link, "'sap', '4711', 'case', '%s'", external);
	if (!by_hand(work, "link_reference", link, error))
		return ibid_reject(work, "NOT_LINKED", 409, error);
	assert_true(
	    by_hand(work, "post",
	            "null, '[{\"account\":\"a\",\"direction\":\"DEBIT\",\"amount\":1,\"currency\":"
	            "\"EUR\"},{\"account\":\"b\",\"direction\":\"CREDIT\",\"amount\":1,"
	            "\"currency\":\"EUR\"}]'",
	            error));
	assert_true(by_hand(work, "move", "'case', 'c-1', 'OPEN'", error));
	return ibid_answer(work, 200, "{}");
}

static void a_callback_calls_them_through_its_handle(void **state) /* B13 B14 B17 */
{
	(void)state;
	assert_int_equal(ibid_handle(ibid, "by-hand", use_handle, (void *)"c-1", NULL), IBID_OK);
	bed_expect(ibid, "by-hand", "k-1", "{}", "executed 200");
	assert_int_equal(rows("ibid.external_reference"), 1);
	assert_int_equal(rows("ibid.journal_group"), 1);
	assert_int_equal(rows("ibid.machine_history"), 1);
	struct ibid *other = bed_ibid(&bed, NULL);
	assert_int_equal(ibid_handle(other, "by-hand", use_handle, (void *)"c-2", NULL), IBID_OK);
	struct ibid_result *result = bed_submit(other, "by-hand", "k-2", "{}");
	assert_int_equal(ibid_result_decision(result), IBID_DECISION_REJECTED);
	assert_non_null(strstr(ibid_result_text(result), "4711 of sap is case c-1 already"));
	ibid_result_free(result);
	ibid_close(other);
	assert_int_equal(rows("ibid.journal_group"), 1);
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
	    TEST(a_group_is_posted_alike_where_no_body_is_kept),
	    TEST(random_groups_balance_or_are_rejected_to_the_last_digit),
	    TEST(of_commands_that_post_one_source_at_once_one_appends),
	    TEST(of_commands_that_post_one_source_differently_at_once_one_wins),
	    TEST(posted_lines_are_never_edited_even_by_the_owner),
	    TEST(a_subject_moves_as_its_machine_allows_and_each_move_is_kept),
	    TEST(a_move_that_is_not_allowed_is_rejected_and_names_both_states),
	    TEST(a_duplicate_is_already_there_only_if_its_attributes_match),
	    TEST(a_move_to_the_same_state_is_one_where_the_machine_says_so),
	    TEST(a_version_that_is_expected_must_be_the_one_before_the_move),
	    TEST(subjects_and_tenants_are_apart),
	    TEST(of_first_moves_at_once_one_wins_and_the_others_are_judged_after_it),
	    TEST(of_moves_at_once_one_wins_and_the_others_are_judged_after_it),
	    TEST(all_of_many_moves_at_once_are_kept_where_each_is_allowed),
	    TEST(history_is_never_edited_even_by_the_owner),
	    TEST(what_is_allowed_is_said_by_the_schema_only),
	    TEST(a_machine_that_is_none_stops_init),
	    TEST(a_callback_calls_them_through_its_handle),
	};
	const struct CMUnitTest on_postgres[] = {TEST(a_group_that_was_posted_is_never_added_to)};
	int failed = cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
	if (bed_kind == BED_POSTGRES) /* on SQLite, ibid's tables are closed to scripts altogether */
		failed += cmocka_run_group_tests_name("kinds, on PostgreSQL", on_postgres, NULL, NULL);
	return failed;
}
