/* SPDX-License-Identifier: Apache-2.0 */
/* test_fields.c -- declared fields: what passes, as which text, and what is said otherwise. */
#include "unit.h"

#include "contract/payload.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static struct json *json_of(const char *text)
{
	struct json *json = NULL;
	struct ibid_err err = {0};
	if (json_read(&arena, text, strlen(text), 0, &json, &err))
		fail_msg("%s", err.text);
	return json;
}

static const char *const currencies[] = {"EUR", "USD", "CHF"};

static struct contract payment(void)
{
	static struct decimal zero = {.units = 0};
	static struct contract_field fields[] = {
	    {.pointer = "/from", .type = FIELD_TEXT, .required = true, .max = 34},
	    {.pointer = "/amount", .type = FIELD_DECIMAL, .required = true, .scale = 2, .above = &zero},
	    {.pointer = "/currency",
	     .type = FIELD_TEXT,
	     .required = true,
	     .one_of = {.items = (const char **)currencies, .count = 3}},
	    {.pointer = "/note", .type = FIELD_TEXT, .max = 5, .class = CLASS_REDACT},
	};
	return (struct contract){.name = "create-payment", .fields = fields, .field_count = 4};
}

static void rejects(const struct contract *contract, const char *payload, const char *why)
{
	struct params params = {.count = 99};
	const char *text = NULL;
	struct ibid_err err = {0};
	assert_int_equal(fields_check(&arena, contract, json_of(payload), &params, &text, &err),
	                 IBID_REJECTED);
	assert_string_equal(text, why);
	assert_int_equal(err.code, IBID_REJECTED);
	assert_int_equal(strncmp(err.text, why, sizeof err.text - 1), 0);
	assert_int_equal(params.count, 99);
}

static struct params accepts(const struct contract *contract, const char *payload)
{
	struct params params = {0};
	const char *why = NULL;
	struct ibid_err err = {0};
	if (fields_check(&arena, contract, json_of(payload), &params, &why, &err))
		fail_msg("%s", err.text);
	assert_null(why);
	assert_int_equal(params.count, contract->field_count);
	return params;
}

/* One field at /v. */
static void one_rejects(struct contract_field field, const char *value, const char *rule)
{
	field.pointer = "/v";
	struct contract contract = {.fields = &field, .field_count = 1};
	rejects(&contract, arena_printf(&arena, "{\"v\":%s}", value),
	        arena_printf(&arena, "/v %s", rule));
}

static void one_accepts(struct contract_field field, const char *value, const char *text)
{
	field.pointer = "/v";
	struct contract contract = {.fields = &field, .field_count = 1};
	struct params params = accepts(&contract, arena_printf(&arena, "{\"v\":%s}", value));
	assert_ptr_equal(params.items[0].field, &field);
	if (!text) {
		assert_null(params.items[0].text);
		return;
	}
	assert_non_null(params.items[0].text);
	assert_string_equal(params.items[0].text, text);
	assert_int_equal(params.items[0].size, strlen(text));
}

/* ---- The whole ------------------------------------------------------------------------------ */

static void fields_come_in_the_order_of_the_contract(void **state)
{
	struct contract contract = payment();
	struct params params = accepts(
	    &contract, "{\"currency\":\"EUR\",\"amount\":12.50,\"from\":\"A\",\"other\":[1]}");
	(void)state;
	assert_ptr_equal(params.items[0].field, &contract.fields[0]);
	assert_string_equal(params.items[0].text, "A");
	assert_string_equal(params.items[1].text, "12.5");
	assert_string_equal(params.items[2].text, "EUR");
	assert_null(params.items[3].text);
}

static void every_problem_is_told_with_pointer_and_rule(void **state)
{
	struct contract contract = payment();
	(void)state;
	rejects(&contract, "{\"amount\":0,\"currency\":\"GBP\",\"note\":\"secret\"}",
	        "/from is missing; /amount must be above 0; /currency must be one of EUR, USD, CHF; "
	        "/note is longer than 5 characters");
	rejects(&contract, "{\"from\":\"A\",\"currency\":\"EUR\",\"amount\":1.005}",
	        "/amount has more than 2 digits after the point");
}

static void a_payload_that_is_no_object_is_rejected(void **state)
{
	struct contract contract = payment();
	(void)state;
	rejects(&contract, "[]", "the payload must be a JSON object");
	rejects(&contract, "null", "the payload must be a JSON object");
	rejects(&contract, "\"x\"", "the payload must be a JSON object");
	contract.field_count = 0;
	rejects(&contract, "7", "the payload must be a JSON object");
	accepts(&contract, "{}");
}

static void null_is_absent(void **state)
{
	(void)state;
	one_rejects((struct contract_field){.type = FIELD_TEXT, .required = true}, "null",
	            "is missing");
	one_rejects((struct contract_field){.type = FIELD_JSON, .required = true}, "null",
	            "is missing");
	one_accepts((struct contract_field){.type = FIELD_TEXT}, "null", NULL);
	one_accepts((struct contract_field){.type = FIELD_JSON}, "null", NULL);
}

static void ten_problems_are_enough(void **state)
{
	struct contract_field fields[12];
	struct contract contract = {.fields = fields, .field_count = 12};
	char why[1024] = "";
	(void)state;
	for (int i = 0; i < 12; i++) {
		fields[i] = (struct contract_field){
		    .pointer = arena_printf(&arena, "/f%d", i), .type = FIELD_TEXT, .required = true};
		if (i < 10)
			snprintf(why + strlen(why), sizeof why - strlen(why), "%s/f%d is missing",
			         i ? "; " : "", i);
	}
	rejects(&contract, "{}", why);
}

static void values_outlive_the_payload(void **state)
{
	struct contract contract = payment();
	struct arena other = {0};
	struct json *payload = NULL;
	struct params params = {0};
	const char *why = NULL, *text = "{\"from\":\"A\",\"amount\":1,\"currency\":\"EUR\"}";
	(void)state;
	assert_int_equal(json_read(&other, text, strlen(text), 0, &payload, NULL), IBID_OK);
	assert_int_equal(fields_check(&arena, &contract, payload, &params, &why, NULL), IBID_OK);
	arena_release(&other);
	assert_string_equal(params.items[0].text, "A");
}

/* ---- Types ---------------------------------------------------------------------------------- */

static void text_is_counted_in_characters(void **state)
{
	const struct contract_field field = {.type = FIELD_TEXT, .max = 3};
	(void)state;
	one_accepts(field, "\"\"", "");
	one_accepts(field, "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"",
	            "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
	one_rejects(field, "\"abcd\"", "is longer than 3 characters");
	one_rejects(field, "7", "must be a text");
	one_accepts((struct contract_field){.type = FIELD_TEXT}, "\"no limit at all\"",
	            "no limit at all");
}

static void text_with_a_nul_is_rejected(void **state)
{
	(void)state;
	one_rejects((struct contract_field){.type = FIELD_TEXT}, "\"a\\u0000b\"",
	            "must not contain U+0000");
	one_rejects((struct contract_field){.type = FIELD_TEXT,
	                                    .one_of = {.items = (const char **)currencies, .count = 3}},
	            "\"EUR\\u0000\"", "must not contain U+0000");
	one_rejects((struct contract_field){.type = FIELD_JSON}, "[{\"a\":\"\\u0000\"}]",
	            "must not contain U+0000");
	one_rejects((struct contract_field){.type = FIELD_JSON}, "{\"\\u0000\":1}",
	            "must not contain U+0000");
}

static void a_choice_is_exact(void **state)
{
	const struct contract_field field = {
	    .type = FIELD_TEXT, .one_of = {.items = (const char **)currencies, .count = 3}};
	(void)state;
	one_accepts(field, "\"CHF\"", "CHF");
	one_rejects(field, "\"chf\"", "must be one of EUR, USD, CHF");
	one_rejects(field, "\"EU\"", "must be one of EUR, USD, CHF");
	one_rejects(field, "\"\"", "must be one of EUR, USD, CHF");
}

static void an_integer_is_a_value_not_a_notation(void **state)
{
	const struct contract_field field = {.type = FIELD_INTEGER};
	(void)state;
	one_accepts(field, "100", "100");
	one_accepts(field, "1e2", "100");
	one_accepts(field, "100.0", "100");
	one_accepts(field, "12000e-3", "12");
	one_accepts(field, "-0", "0");
	one_accepts(field, "9223372036854775807", "9223372036854775807");
	one_accepts(field, "-9223372036854775808", "-9223372036854775808");
	one_rejects(field, "9223372036854775808", "is beyond the range of 64-bit integers");
	one_rejects(field, "-9223372036854775809", "is beyond the range of 64-bit integers");
	one_rejects(field, "1e400", "is beyond the range of 64-bit integers");
	one_rejects(field, "1.5", "must be an integer");
	one_rejects(field, "1e-400", "must be an integer");
	one_rejects(field, "\"1\"", "must be an integer");
	one_rejects(field, "true", "must be an integer");
}

static void an_integer_has_bounds(void **state)
{
	struct decimal one = {.units = 1}, ten = {.units = 10};
	const struct contract_field field = {.type = FIELD_INTEGER, .at_least = &one, .at_most = &ten};
	(void)state;
	one_accepts(field, "1", "1");
	one_accepts(field, "10", "10");
	one_rejects(field, "0", "must be at least 1");
	one_rejects(field, "11", "must be at most 10");
}

static void a_decimal_is_exact(void **state)
{
	const struct contract_field cents = {.type = FIELD_DECIMAL, .scale = 2};
	const struct contract_field open = {.type = FIELD_DECIMAL, .scale = -1};
	const struct contract_field whole = {.type = FIELD_DECIMAL, .scale = 0};
	(void)state;
	one_accepts(cents, "12.500", "12.5");
	one_accepts(cents, "12.50000000000000000000000000000000000000000000", "12.5");
	one_accepts(cents, "1250e-2", "12.5");
	one_accepts(cents, "-0.00", "0");
	one_accepts(cents, "12345678901234567890.12", "12345678901234567890.12");
	one_rejects(cents, "12.345", "has more than 2 digits after the point");
	one_rejects(cents, "1e-30", "has more than 2 digits after the point");
	one_rejects(cents, "\"12.50\"", "must be a number");
	one_accepts(whole, "7.0", "7");
	one_rejects(whole, "7.5", "has more than 0 digits after the point");
	one_accepts(open, "0.000000000000000001", "0.000000000000000001");
	one_rejects(open, "0.0000000000000000001", "has more than 18 digits after the point");
	one_accepts(open, "12345678901234567890.123456789012345678",
	            "12345678901234567890.123456789012345678");
	one_rejects(open, "123456789012345678901.123456789012345678", "has more than 38 digits");
	one_accepts(open, "1e37", "10000000000000000000000000000000000000");
	one_rejects(open, "1e38", "has more than 38 digits");
	one_rejects(open, "1e400", "has more than 38 digits");
}

static void a_decimal_has_bounds(void **state)
{
	struct decimal low = {.units = -5, .scale = 1}, high = {.units = 25, .scale = 2};
	struct contract_field field = {
	    .type = FIELD_DECIMAL, .scale = -1, .above = &low, .below = &high};
	(void)state;
	one_accepts(field, "-0.4999", "-0.4999");
	one_rejects(field, "-0.5", "must be above -0.5");
	one_accepts(field, "0.249999999999999999", "0.249999999999999999");
	one_rejects(field, "0.25", "must be below 0.25");
	field = (struct contract_field){
	    .type = FIELD_DECIMAL, .scale = -1, .at_least = &low, .at_most = &high};
	one_accepts(field, "-0.50", "-0.5");
	one_accepts(field, "0.25", "0.25");
	one_rejects(field, "-0.51", "must be at least -0.5");
	one_rejects(field, "0.250000001", "must be at most 0.25");
}

static void a_boolean_is_true_or_false(void **state)
{
	const struct contract_field field = {.type = FIELD_BOOLEAN};
	(void)state;
	one_accepts(field, "true", "true");
	one_accepts(field, "false", "false");
	one_rejects(field, "\"true\"", "must be true or false");
	one_rejects(field, "1", "must be true or false");
}

static void a_date_is_a_real_day(void **state)
{
	const struct contract_field field = {.type = FIELD_DATE};
	(void)state;
	one_accepts(field, "\"2028-02-29\"", "2028-02-29");
	one_rejects(field, "\"2026-02-29\"", "must be a date (YYYY-MM-DD)");
	one_rejects(field, "\"15.11.2026\"", "must be a date (YYYY-MM-DD)");
	one_rejects(field, "20261115", "must be a date (YYYY-MM-DD)");
	one_accepts(field, "\"0001-01-01\"", "0001-01-01");
	one_rejects(field, "\"0000-12-31\"", "must be a date (YYYY-MM-DD)");
}

static void an_instant_is_told_in_utc(void **state)
{
	const struct contract_field field = {.type = FIELD_INSTANT};
	const char *rule = "must be a date and time with a zone (RFC 3339)";
	(void)state;
	one_accepts(field, "\"2026-11-15T10:00:00+01:00\"", "2026-11-15T09:00:00Z");
	one_accepts(field, "\"2026-11-15T09:00:00.1200Z\"", "2026-11-15T09:00:00.12Z");
	one_rejects(field, "\"2026-11-15T10:00:00\"", rule);
	one_rejects(field, "\"2026-11-15\"", rule);
	one_rejects(field, "1763200800", rule);
	one_rejects(field, "\"0001-01-01T00:00:00+01:00\"", rule);
}

static void json_is_told_in_canonical_form(void **state)
{
	const struct contract_field field = {.type = FIELD_JSON};
	(void)state;
	one_accepts(field, "{\"b\": 1.10, \"a\": [true, null]}", "{\"a\":[true,null],\"b\":1.1}");
	one_accepts(field, "\"x\"", "\"x\"");
	one_accepts(field, "[]", "[]");
}

/* ---- Unknown members ------------------------------------------------------------------------ */

static struct contract strict(void)
{
	static struct contract_field fields[] = {
	    {.pointer = "/a", .type = FIELD_TEXT},       {.pointer = "/b/c", .type = FIELD_TEXT},
	    {.pointer = "/free", .type = FIELD_JSON},    {.pointer = "/list/0/x", .type = FIELD_TEXT},
	    {.pointer = "/s~1l~0a", .type = FIELD_TEXT},
	};
	return (struct contract){.fields = fields, .field_count = 5, .refuse_unknown_fields = true};
}

static void declared_members_and_what_leads_to_them_are_known(void **state)
{
	struct contract contract = strict();
	struct params params = accepts(&contract,
	                               "{\"a\":\"1\",\"b\":{\"c\":\"2\"},\"free\":{\"x\":{\"y\":[1]}},"
	                               "\"list\":[{\"x\":\"3\"}],\"s/l~a\":\"4\"}");
	(void)state;
	assert_string_equal(params.items[1].text, "2");
	assert_string_equal(params.items[3].text, "3");
	assert_string_equal(params.items[4].text, "4");
	accepts(&contract, "{}");
	accepts(&contract, "{\"b\":{},\"list\":[]}");
	accepts(&contract, "{\"b\":null}");
}

static void undeclared_members_are_refused_by_name(void **state)
{
	struct contract contract = strict();
	(void)state;
	rejects(&contract, "{\"z\":1}", "/z is not a declared field");
	rejects(&contract, "{\"\":1}", "/ is not a declared field");
	rejects(&contract, "{\"ab\":1,\"A\":2}",
	        "/ab is not a declared field; /A is not a declared field");
	rejects(&contract, "{\"b\":{\"c\":\"1\",\"d\":2}}", "/b/d is not a declared field");
	rejects(&contract, "{\"b\":[1]}", "/b/0 is not a declared field");
	rejects(&contract, "{\"b\":7}", "/b must be an object");
	rejects(&contract, "{\"list\":[{\"x\":\"1\"},{}]}", "/list/1 is not a declared field");
	rejects(&contract, "{\"a\\u0000\":1}", "/a\\u0000 is not a declared field");
	rejects(&contract, "{\"u/v~w\":null}", "/u~1v~0w is not a declared field");
	rejects(&contract, "{\"b/c\":1}", "/b~1c is not a declared field");
	rejects(&contract, "{\"a\":{\"q\":1}}", "/a must be a text");
}

static void undeclared_members_are_kept_unless_refused(void **state)
{
	struct contract contract = strict();
	(void)state;
	contract.refuse_unknown_fields = false;
	accepts(&contract, "{\"z\":1,\"b\":{\"d\":2}}");
}

static void a_declared_root_covers_everything(void **state)
{
	struct contract_field field = {.pointer = "", .type = FIELD_JSON};
	struct contract contract = {.fields = &field, .field_count = 1, .refuse_unknown_fields = true};
	struct params params = accepts(&contract, "{\"z\":1.0}");
	(void)state;
	assert_string_equal(params.items[0].text, "{\"z\":1}");
}

static void a_long_name_is_cut_between_characters(void **state)
{
	struct contract contract = strict();
	char name[203] = "", shown[64] = "";
	(void)state;
	for (size_t i = 0; i < 101; i++)
		memcpy(name + 2 * i, "\xC3\xA9", 2);
	memcpy(shown, name, 60);
	rejects(&contract, arena_printf(&arena, "{\"%s\":1}", name),
	        arena_printf(&arena, "/%s... is not a declared field", shown));
}

static void many_undeclared_members_are_ten_problems(void **state)
{
	struct contract contract = strict();
	char payload[4096] = "{", why[4096] = "";
	(void)state;
	for (int i = 0; i < 50; i++) {
		size_t used = strlen(payload), told = strlen(why);
		snprintf(payload + used, sizeof payload - used, "%s\"m%d\":1", i ? "," : "", i);
		if (i < 10)
			snprintf(why + told, sizeof why - told, "%s/m%d is not a declared field", i ? "; " : "",
			         i);
	}
	strcat(payload, "}");
	rejects(&contract, payload, why);
}

static void taken_apart(const char *text, const char *const (*wanted)[2], size_t count)
{
	struct field_problem problem;
	for (size_t i = 0; i < count; i++) {
		assert_true(fields_problem_next(&text, &problem));
		assert_string_equal(arena_strndup(&arena, problem.pointer, problem.pointer_size),
		                    wanted[i][0]);
		assert_string_equal(arena_strndup(&arena, problem.rule, problem.rule_size), wanted[i][1]);
	}
	assert_string_equal(text, "");
}

static void problems_are_taken_apart_again_whatever_the_names_are(void **state)
{
	static const char *const values[] = {"a; b", "c; /first name is missing", "d;"};
	static struct contract_field fields[] = {
	    {.pointer = "/first name", .type = FIELD_TEXT, .required = true},
	    {.pointer = "/grade", .type = FIELD_TEXT, .one_of = {(const char **)values, 3}},
	    {.pointer = "/it must be", .type = FIELD_INTEGER, .required = true},
	    {.pointer = "/who/is missing", .type = FIELD_TEXT, .required = true},
	};
	static const char *const wanted[][2] = {
	    {"/first name", "is missing"},
	    {"/grade", "must be one of a\\u003b b, c\\u003b /first name is missing, d\\u003b"},
	    {"/it\\u0020must\\u0020be", "must be an integer"},
	    {"/who/is missing", "must be a text"},
	    {"/x; ~1grade", "is not a declared field"},
	    {"/y\\u0020is\\u0020missing;\\u0020~1z", "is not a declared field"},
	};
	struct contract contract = {
	    .name = "n", .fields = fields, .field_count = 4, .refuse_unknown_fields = true};
	struct params params;
	const char *why = NULL;
	struct ibid_err err;
	(void)state;
	struct json *payload = json_of(
	    "{\"grade\":\"e\",\"it must be\":true,\"who\":{\"is missing\":1},"
	    "\"x; /grade\":1,\"y is missing; /z\":1}");
	assert_int_equal(fields_check(&arena, &contract, payload, &params, &why, &err), IBID_REJECTED);
	taken_apart(why, wanted, 6);
}

static void the_whole_payload_has_an_empty_pointer(void **state)
{
	static const char *const wanted[][2] = {{"", "must be a JSON object"}};
	(void)state;
	taken_apart("the payload must be a JSON object", wanted, 1);
}

static void other_texts_are_not_taken_apart(void **state)
{
	static const char *const others[] = {"", "the payload is bad", "amount must be above 0",
	                                     "/amount is wrong", "the payload of /a must be b"};
	struct field_problem problem;
	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		const char *at = others[i];
		assert_false(fields_problem_next(&at, &problem));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(fields_come_in_the_order_of_the_contract, tear_down),
	    cmocka_unit_test_teardown(every_problem_is_told_with_pointer_and_rule, tear_down),
	    cmocka_unit_test_teardown(a_payload_that_is_no_object_is_rejected, tear_down),
	    cmocka_unit_test_teardown(null_is_absent, tear_down),
	    cmocka_unit_test_teardown(ten_problems_are_enough, tear_down),
	    cmocka_unit_test_teardown(values_outlive_the_payload, tear_down),
	    cmocka_unit_test_teardown(text_is_counted_in_characters, tear_down),
	    cmocka_unit_test_teardown(text_with_a_nul_is_rejected, tear_down),
	    cmocka_unit_test_teardown(a_choice_is_exact, tear_down),
	    cmocka_unit_test_teardown(an_integer_is_a_value_not_a_notation, tear_down),
	    cmocka_unit_test_teardown(an_integer_has_bounds, tear_down),
	    cmocka_unit_test_teardown(a_decimal_is_exact, tear_down),
	    cmocka_unit_test_teardown(a_decimal_has_bounds, tear_down),
	    cmocka_unit_test_teardown(a_boolean_is_true_or_false, tear_down),
	    cmocka_unit_test_teardown(a_date_is_a_real_day, tear_down),
	    cmocka_unit_test_teardown(an_instant_is_told_in_utc, tear_down),
	    cmocka_unit_test_teardown(json_is_told_in_canonical_form, tear_down),
	    cmocka_unit_test_teardown(declared_members_and_what_leads_to_them_are_known, tear_down),
	    cmocka_unit_test_teardown(undeclared_members_are_refused_by_name, tear_down),
	    cmocka_unit_test_teardown(undeclared_members_are_kept_unless_refused, tear_down),
	    cmocka_unit_test_teardown(a_declared_root_covers_everything, tear_down),
	    cmocka_unit_test_teardown(a_long_name_is_cut_between_characters, tear_down),
	    cmocka_unit_test_teardown(many_undeclared_members_are_ten_problems, tear_down),
	    cmocka_unit_test_teardown(problems_are_taken_apart_again_whatever_the_names_are, tear_down),
	    cmocka_unit_test_teardown(the_whole_payload_has_an_empty_pointer, tear_down),
	    cmocka_unit_test_teardown(other_texts_are_not_taken_apart, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
