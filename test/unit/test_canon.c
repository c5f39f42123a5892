/* SPDX-License-Identifier: Apache-2.0 */
/* A03: one text for one meaning. The vectors state what RFC 8785 prescribes; the properties hold
 * for whatever the seeded generator makes up. */
#include "unit.h"

#include "base/canon.h"
#include "base/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;
static struct env_virtual random_env;

static int set_up(void **state)
{
	(void)state;
	env_virtual_init(&random_env, 0, 8785);
	return 0;
}

static int clean_up(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* The canonical form, in the arena. */
static const char *canon_sized(const char *text, size_t size)
{
	struct json *value = NULL;
	struct ibid_err err;
	struct str out = STR_INIT(32 << 20);
	if (json_read(&arena, text, size, 0, &value, &err))
		fail_msg("%.*s: %s", (int)size, text, err.text);
	canon_write(&out, value);
	assert_false(out.failed);
	const char *copy = arena_strndup(&arena, str_text(&out), out.size);
	str_release(&out);
	return copy;
}

static const char *canon(const char *text)
{
	return canon_sized(text, strlen(text));
}

static const char *number(const char *text)
{
	struct str out = STR_INIT(1 << 16);
	canon_number(&out, text, strlen(text));
	assert_false(out.failed);
	const char *copy = arena_strdup(&arena, str_text(&out));
	str_release(&out);
	return copy;
}

static int number_cmp(const char *a, const char *b)
{
	int order = canon_number_cmp(a, strlen(a), b, strlen(b));
	return (order > 0) - (order < 0);
}

/* ---- What RFC 8785 does with a double, by other means than canon.c -------------------------- */

/* The shortest decimal that reads back as `value`, laid out as ECMAScript does. */
static void oracle_number(double value, char ret[64])
{
	char e_form[40], digits[20];
	int size = 0;
	if (value == 0) {
		strcpy(ret, "0");
		return;
	}
	for (int precision = 0; precision <= 16; precision++) {
		snprintf(e_form, sizeof e_form, "%.*e", precision, fabs(value));
		if (strtod(e_form, NULL) == fabs(value))
			break;
	}
	int n = atoi(strchr(e_form, 'e') + 1) + 1;
	for (const char *p = e_form; *p != 'e'; p++)
		if (*p != '.')
			digits[size++] = *p;
	digits[size] = '\0';
	if (value < 0)
		*ret++ = '-';
	if (size <= n && n <= 21)
		sprintf(ret, "%s%.*s", digits, n - size, "00000000000000000000");
	else if (0 < n && n <= 21)
		sprintf(ret, "%.*s.%s", n, digits, digits + n);
	else if (-6 < n && n <= 0)
		sprintf(ret, "0.%.*s%s", -n, "00000", digits);
	else if (size == 1)
		sprintf(ret, "%ce%+d", digits[0], n - 1);
	else
		sprintf(ret, "%c.%se%+d", digits[0], digits + 1, n - 1);
}

static const struct {
	uint64_t bits;
	const char *text;
} appendix_b[] = {
    {UINT64_C(0x0000000000000000), "0"},
    {UINT64_C(0x8000000000000000), "0"},
    {UINT64_C(0x0000000000000001), "5e-324"},
    {UINT64_C(0x8000000000000001), "-5e-324"},
    {UINT64_C(0x7fefffffffffffff), "1.7976931348623157e+308"},
    {UINT64_C(0xffefffffffffffff), "-1.7976931348623157e+308"},
    {UINT64_C(0x4340000000000000), "9007199254740992"},
    {UINT64_C(0xc340000000000000), "-9007199254740992"},
    {UINT64_C(0x4430000000000000), "295147905179352830000"},
    {UINT64_C(0x44b52d02c7e14af5), "9.999999999999997e+22"},
    {UINT64_C(0x44b52d02c7e14af6), "1e+23"},
    {UINT64_C(0x44b52d02c7e14af7), "1.0000000000000001e+23"},
    {UINT64_C(0x444b1ae4d6e2ef4e), "999999999999999700000"},
    {UINT64_C(0x444b1ae4d6e2ef4f), "999999999999999900000"},
    {UINT64_C(0x444b1ae4d6e2ef50), "1e+21"},
    {UINT64_C(0x3eb0c6f7a0b5ed8c), "9.999999999999997e-7"},
    {UINT64_C(0x3eb0c6f7a0b5ed8d), "0.000001"},
    {UINT64_C(0x41b3de4355555553), "333333333.3333332"},
    {UINT64_C(0x41b3de4355555554), "333333333.33333325"},
    {UINT64_C(0x41b3de4355555555), "333333333.3333333"},
    {UINT64_C(0x41b3de4355555556), "333333333.3333334"},
    {UINT64_C(0x41b3de4355555557), "333333333.33333343"},
    {UINT64_C(0xbecbf647612f3696), "-0.0000033333333333333333"},
    {UINT64_C(0x43143ff3c1cb0959), "1424953923781206.2"},
};

static void the_oracle_prints_the_table_of_appendix_b(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(appendix_b); i++) {
		double value;
		char text[64];
		memcpy(&value, &appendix_b[i].bits, sizeof value);
		oracle_number(value, text);
		assert_string_equal(text, appendix_b[i].text);
	}
}

static void numbers_of_appendix_b_are_written_as_it_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(appendix_b); i++)
		assert_string_equal(canon(appendix_b[i].text), appendix_b[i].text);
	assert_string_equal(number("-0"), "0");
	assert_string_equal(number("0.5E-323"), "5e-324");
	assert_string_equal(number("10000e+19"), "1e+23");
	assert_string_equal(number("0.099999999999999970E-5"), "9.999999999999997e-7");
	assert_string_equal(number("2.9514790517935283E20"), "295147905179352830000");
}

static void random_number_text(char *ret)
{
	size_t whole = pick(&random_env, 4) ? 1 + pick(&random_env, 18) : 0;
	size_t rest = pick(&random_env, 3) ? pick(&random_env, 18) : 0;
	if (pick(&random_env, 2))
		*ret++ = '-';
	if (whole == 0)
		*ret++ = '0';
	for (size_t i = 0; i < whole; i++)
		*ret++ = (char)(i ? '0' + (pick(&random_env, 2) ? pick(&random_env, 10) : 0)
		                  : '1' + pick(&random_env, 9));
	if (rest)
		*ret++ = '.';
	for (size_t i = 0; i < rest; i++)
		*ret++ = (char)('0' + (pick(&random_env, 2) ? pick(&random_env, 10) : 0));
	*ret = '\0';
	if (pick(&random_env, 2))
		sprintf(ret, "%c%d", pick(&random_env, 2) ? 'e' : 'E', (int)pick(&random_env, 80) - 40);
	else if (pick(&random_env, 8) == 0)
		sprintf(ret, "e%+d", (int)pick(&random_env, 800) - 400);
}

/* The design's rule, word for word: what RFC 8785 prints where that has the value of the text. */
static void numbers_agree_with_rfc_8785_wherever_its_decimal_has_the_same_value(void **state)
{
	(void)state;
	size_t same = 0, kept = 0;
	for (int i = 0; i < 40000; i++) {
		char text[96], expected[64];
		random_number_text(text);
		const char *ours = number(text);
		double value = strtod(text, NULL);
		assert_int_equal(number_cmp(ours, text), 0);
		if (!isfinite(value))
			continue;
		oracle_number(value, expected);
		if (number_cmp(expected, text) == 0) {
			assert_string_equal(ours, expected);
			same++;
		} else {
			assert_string_not_equal(ours, expected);
			kept++;
		}
	}
	assert_true(same > 10000);
	assert_true(kept > 1000);
}

static void every_double_is_written_as_rfc_8785_does(void **state)
{
	(void)state;
	for (int i = 0; i < 40000; i++) {
		double value;
		char expected[64];
		env_random(&random_env.env, &value, sizeof value);
		if (!isfinite(value))
			continue;
		oracle_number(value, expected);
		assert_string_equal(number(expected), expected);
		arena_release(&arena);
	}
}

static void numbers_that_a_double_would_change_keep_their_digits(void **state)
{
	(void)state;
	assert_string_equal(number("9007199254740993"), "9007199254740993");
	assert_string_equal(number("0.1000000000000000055"), "0.1000000000000000055");
	assert_string_equal(number("333333333.33333329"), "333333333.33333329");
	assert_string_equal(number("1e400"), "1e+400");
	assert_string_equal(number("-1.50e-400"), "-1.5e-400");
	assert_string_equal(number("10e-0000000401"), "1e-400");
	assert_string_equal(number("123456789012345678901234567890"),
	                    "1.2345678901234567890123456789e+29");
	assert_string_equal(number("123456789012345678901"), "123456789012345678901");
	assert_string_equal(number("123456789012345678901.50"), "123456789012345678901.5");
	assert_string_equal(number("1e999999999"), "1e+999999999");
	assert_string_equal(number("0.01e-999999999"), "1e-1000000001");
	assert_string_equal(number("0e999999999"), "0");
}

static void the_exponent_form_begins_where_ecmascript_says(void **state)
{
	(void)state;
	assert_string_equal(number("1e20"), "100000000000000000000");
	assert_string_equal(number("1e21"), "1e+21");
	assert_string_equal(number("1.5e21"), "1.5e+21");
	assert_string_equal(number("999999999999999999999"), "999999999999999999999");
	assert_string_equal(number("1e-6"), "0.000001");
	assert_string_equal(number("1.25e-6"), "0.00000125");
	assert_string_equal(number("1e-7"), "1e-7");
	assert_string_equal(number("0.000000125"), "1.25e-7");
}

static void notations_of_one_value_are_one_text(void **state)
{
	(void)state;
	static const char *const same[][4] = {
	    {"1.10", "1.1", "11e-1", "0.0110E+2"},
	    {"-0", "0", "0.00", "-0e-17"},
	    {"100", "1e2", "1.00E+02", "1000e-1"},
	    {"-2.50", "-25e-1", "-0.25e1", "-2.5"},
	};
	for (size_t i = 0; i < COUNT(same); i++)
		for (size_t k = 1; k < 4; k++)
			assert_string_equal(canon(same[i][k]), canon(same[i][0]));
}

static void different_values_are_different_texts(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
	    {"9007199254740992", "9007199254740993"},
	    {"0.1", "0.1000000000000000055"},
	    {"1", "-1"},
	    {"1", "\"1\""},
	    {"1e400", "1e401"},
	    {"1e-400", "0"},
	    {"[]", "{}"},
	    {"null", "false"},
	    {"\"e\\u0301\"", "\"\\u00e9\""},
	    {"[1,2]", "[2,1]"},
	    {"\"\\u0000\"", "\"\""},
	};
	for (size_t i = 0; i < COUNT(pairs); i++)
		assert_string_not_equal(canon(pairs[i][0]), canon(pairs[i][1]));
}

static void number_order_is_exact(void **state)
{
	(void)state;
	static const char *const ascending[] = {"-1e401",
	                                        "-1e400",
	                                        "-9007199254740993",
	                                        "-9007199254740992",
	                                        "-1",
	                                        "-0.10000000000001",
	                                        "-0.1",
	                                        "-1e-400",
	                                        "0",
	                                        "1e-999999999",
	                                        "1e-400",
	                                        "0.1",
	                                        "0.1000000000000000055",
	                                        "0.11",
	                                        "1",
	                                        "9",
	                                        "10",
	                                        "99.9",
	                                        "9007199254740992",
	                                        "9007199254740993",
	                                        "1e400",
	                                        "1.5e400",
	                                        "1e401",
	                                        "1e999999999"};
	for (int i = 0; i < (int)COUNT(ascending); i++)
		for (int k = 0; k < (int)COUNT(ascending); k++)
			assert_int_equal(number_cmp(ascending[i], ascending[k]), (i > k) - (i < k));
	assert_int_equal(number_cmp("1.10", "11e-1"), 0);
	assert_int_equal(number_cmp("-0", "0e5"), 0);
	assert_int_equal(number_cmp("-120", "-12e1"), 0);
}

static void number_order_agrees_with_decimals_and_with_canonical_texts(void **state)
{
	(void)state;
	size_t equal = 0;
	for (int i = 0; i < 50000; i++) {
		char text[2][32];
		struct decimal value[2];
		for (int k = 0; k < 2; k++) {
			sprintf(text[k], "%s%zu.%02zu%s%d", pick(&random_env, 2) ? "-" : "",
			        pick(&random_env, 12), pick(&random_env, 4) * 10,
			        pick(&random_env, 2) ? "e" : "E", (int)pick(&random_env, 5) - 2);
			assert_int_equal(decimal_read(text[k], strlen(text[k]), &value[k], NULL), IBID_OK);
		}
		int order = number_cmp(text[0], text[1]);
		assert_int_equal(order, decimal_cmp(value[0], value[1]));
		assert_int_equal(order == 0, strcmp(number(text[0]), number(text[1])) == 0);
		equal += order == 0;
		arena_release(&arena);
	}
	assert_true(equal > 100);
}

/* ---- Names and strings ---------------------------------------------------------------------- */

static void members_are_sorted_by_utf16_code_units(void **state)
{
	(void)state;
	assert_string_equal(canon("{\"\\u20ac\":\"euro\",\"\\r\":\"return\",\"\\ufb33\":\"dalet\","
	                          "\"1\":\"one\",\"\\ud83d\\ude00\":\"face\",\"\\u0080\":\"control\","
	                          "\"\\u00f6\":\"o umlaut\"}"),
	                    "{\"\\r\":\"return\",\"1\":\"one\",\"\xC2\x80\":\"control\","
	                    "\"\xC3\xB6\":\"o umlaut\",\"\xE2\x82\xAC\":\"euro\","
	                    "\"\xF0\x9F\x98\x80\":\"face\",\"\xEF\xAC\xB3\":\"dalet\"}");
}

/* Code units of valid UTF-8, the long way round. */
static size_t to_utf16(const char *text, size_t size, uint16_t *ret)
{
	size_t units = 0;
	for (size_t i = 0; i < size;) {
		unsigned char first = (unsigned char)text[i];
		size_t more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
		uint32_t c = more ? first & (0x3Fu >> more) : first;
		for (i++; more; more--, i++)
			c = c << 6 | ((unsigned char)text[i] & 0x3F);
		if (c >= 0x10000) {
			ret[units++] = (uint16_t)(0xD800 + ((c - 0x10000) >> 10));
			c = 0xDC00 + ((c - 0x10000) & 0x3FF);
		}
		ret[units++] = (uint16_t)c;
	}
	return units;
}

static int utf16_cmp(const char *a, const char *b)
{
	uint16_t left[64], right[64];
	size_t a_units = to_utf16(a, strlen(a), left), b_units = to_utf16(b, strlen(b), right);
	for (size_t i = 0; i < a_units && i < b_units; i++)
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	return (a_units > b_units) - (a_units < b_units);
}

static void name_order_is_that_of_code_units(void **state)
{
	(void)state;
	static const char *const letters[] = {"a",
	                                      "b",
	                                      "\x7F",
	                                      "\xC2\x80",
	                                      "\xDF\xBF",
	                                      "\xE0\xA0\x80",
	                                      "\xED\x9F\xBF",
	                                      "\xEE\x80\x80",
	                                      "\xEF\xAC\xB3",
	                                      "\xEF\xBF\xBF",
	                                      "\xF0\x90\x80\x80",
	                                      "\xF0\x9F\x98\x80",
	                                      "\xF3\xA0\x80\x80",
	                                      "\xF4\x8F\xBF\xBF"};
	for (int i = 0; i < 50000; i++) {
		char name[2][32] = {"", ""};
		for (int k = 0; k < 2; k++)
			for (size_t left = pick(&random_env, 5); left; left--)
				strcat(name[k], letters[pick(&random_env, COUNT(letters))]);
		int order = canon_name_cmp(name[0], strlen(name[0]), name[1], strlen(name[1]));
		assert_int_equal((order > 0) - (order < 0), utf16_cmp(name[0], name[1]));
	}
	assert_true(canon_name_cmp("a\0a", 3, "a\0b", 3) < 0);
	assert_true(canon_name_cmp("a\0", 2, "a", 1) > 0);
}

static void strings_are_escaped_no_more_than_needed(void **state)
{
	(void)state;
	assert_string_equal(canon("\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\""),
	                    "\"\xE2\x82\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"");
	assert_string_equal(
	    canon("\"\\u0000\\u0008\\u0009\\u000a\\u000b\\u000c\\u000D\\u001F\\u007f\""),
	    "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\x7F\"");
	assert_string_equal(canon("\"</script>\\u2028\""), "\"</script>\xE2\x80\xA8\"");
}

/* Each place within and behind the eight bytes that are looked at together. */
static void escapes_are_found_wherever_they_stand(void **state)
{
	(void)state;
	static const char special[] = {'"', '\\', '\n', 0x01, 0x1F};
	for (size_t s = 0; s < sizeof special; s++) {
		for (size_t at = 0; at < 20; at++) {
			char content[21] = "\xC3\xA9qrstuvwxyz!#[]^~\x7F ", escaped[64];
			struct json value = {.type = JSON_STRING, .text = content, .size = 20};
			struct str direct = STR_INIT(256), expected = STR_INIT(256);
			content[at] = special[s];
			canon_write(&direct, &value);
			str_addf(&expected, "\"%.*s", (int)at, content);
			snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)special[s]);
			str_adds(&expected, special[s] == '"'    ? "\\\""
			                    : special[s] == '\\' ? "\\\\"
			                    : special[s] == '\n' ? "\\n"
			                                         : escaped);
			str_addf(&expected, "%s\"", content + at + 1);
			assert_string_equal(direct.data, expected.data);
			str_release(&direct);
			str_release(&expected);
		}
	}
}

static void unicode_is_not_normalised(void **state)
{
	(void)state;
	assert_string_equal(canon("{\"Unnormalized\":\"A\\u030a\"}"),
	                    "{\"Unnormalized\":\"A\xCC\x8A\"}");
}

/* ---- Whole texts ---------------------------------------------------------------------------- */

static void arrays_keep_their_order_and_objects_do_not(void **state)
{
	(void)state;
	assert_string_equal(canon("[ 56, { \"d\": true, \"10\": null, \"1\": [ ] } ]"),
	                    "[56,{\"1\":[],\"10\":null,\"d\":true}]");
}

static void sorting_ignores_the_locale(void **state)
{
	(void)state;
	assert_string_equal(
	    canon("{\"peach\":1,\"p\xC3\xA9\x63h\xC3\xA9\":2,\"p\xC3\xAA\x63he\":3,\"sin\":4}"),
	    "{\"peach\":1,\"p\xC3\xA9\x63h\xC3\xA9\":2,\"p\xC3\xAA\x63he\":3,\"sin\":4}");
	assert_string_equal(
	    canon("{\"sin\":4,\"p\xC3\xAA\x63he\":3,\"p\xC3\xA9\x63h\xC3\xA9\":2,\"peach\":1}"),
	    "{\"peach\":1,\"p\xC3\xA9\x63h\xC3\xA9\":2,\"p\xC3\xAA\x63he\":3,\"sin\":4}");
}

static void structures_are_sorted_at_every_level(void **state)
{
	(void)state;
	assert_string_equal(canon("{\"1\": {\"f\": {\"f\": \"hi\",\"F\": 5} ,\"\\n\": 56.0},\n"
	                          "\"10\": { },\"\": \"empty\",\"a\": { },\n"
	                          "\"111\": [ {\"e\": \"yes\",\"E\": \"no\" } ],\"A\": { }}"),
	                    "{\"\":\"empty\",\"1\":{\"\\n\":56,\"f\":{\"F\":5,\"f\":\"hi\"}},\"10\":{},"
	                    "\"111\":[{\"E\":\"no\",\"e\":\"yes\"}],\"A\":{},\"a\":{}}");
}

static void values_are_written_as_the_standard_shows_them(void **state)
{
	(void)state;
	assert_string_equal(canon("{\"numbers\": [333333333.3333333, 1E30, 4.50, 2e-3,\n"
	                          "0.000000000000000000000000001],\"string\": \"\\/\",\n"
	                          "\"literals\": [null, true, false]}"),
	                    "{\"literals\":[null,true,false],"
	                    "\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\"string\":\"/\"}");
}

static void weird_names_are_sorted_too(void **state)
{
	(void)state;
	assert_string_equal(
	    canon("{\"\\u20ac\":1,\"\\r\":2,\"\\u000a\":3,\"1\":4,\"\\u0080\":\"\\u007f\","
	          "\"\\ud83d\\ude02\":6,\"\\u00f6\":7,\"\\ufb33\":8,\"</script>\":9}"),
	    "{\"\\n\":3,\"\\r\":2,\"1\":4,\"</script>\":9,\"\xC2\x80\":\"\x7F\","
	    "\"\xC3\xB6\":7,\"\xE2\x82\xAC\":1,\"\xF0\x9F\x98\x82\":6,\"\xEF\xAC\xB3\":8}");
}

static void objects_of_any_size_are_sorted(void **state)
{
	(void)state;
	static const size_t counts[] = {2, 31, 32, 33, 100, 5000};
	for (size_t i = 0; i < COUNT(counts); i++) {
		struct str text = STR_INIT(1 << 20);
		for (size_t k = 0; k < counts[i]; k++)
			str_addf(&text, "%s\"%05zu\":%zu", k ? "," : "{", k * 7919 % 10007, k);
		str_addc(&text, '}');
		const char *out = canon_sized(text.data, text.size);
		size_t members = 0;
		char last[6] = "";
		for (const char *p = out + 1; p[-1] != '}'; p = strpbrk(p + 8, ",}") + 1, members++) {
			assert_true(strncmp(last, p + 1, 5) < 0);
			memcpy(last, p + 1, 5);
		}
		assert_int_equal(members, counts[i]);
		assert_int_equal(strlen(out), text.size);
		str_release(&text);
	}
}

static void long_pieces_pass_the_gathering_buffer(void **state)
{
	(void)state;
	for (size_t size = 2000; size < 2100; size++) {
		struct str text = STR_INIT(1 << 16);
		str_addc(&text, '"');
		for (size_t i = 0; i < size; i++)
			str_addc(&text, (char)('a' + i % 26));
		str_adds(&text, "\"");
		struct str list = STR_INIT(1 << 16);
		str_addf(&list, "[%s,%s,1]", text.data, text.data);
		assert_string_equal(canon(list.data), list.data);
		str_release(&list);
		str_release(&text);
		arena_release(&arena);
	}
}

static void an_output_beyond_its_cap_fails(void **state)
{
	(void)state;
	struct json *value;
	struct str exact = STR_INIT(6), small = STR_INIT(5);
	assert_int_equal(json_read(&arena, "[1, 23.0]", 9, 0, &value, NULL), IBID_OK);
	canon_write(&exact, value);
	assert_false(exact.failed);
	assert_string_equal(exact.data, "[1,23]");
	canon_write(&small, value);
	assert_true(small.failed);
	str_release(&exact);
	str_release(&small);
}

static void a_value_deeper_than_any_text_fails(void **state)
{
	(void)state;
	struct json levels[JSON_DEPTH_MAX + 2] = {0};
	for (size_t i = 0; i < COUNT(levels); i++)
		levels[i] = (struct json){.type = JSON_ARRAY,
		                          .size = i + 1 < COUNT(levels),
		                          .child = i + 1 < COUNT(levels) ? &levels[i + 1] : NULL};
	struct str out = STR_INIT(4096);
	canon_write(&out, &levels[1]);
	assert_false(out.failed);
	str_clear(&out);
	canon_write(&out, &levels[0]);
	assert_true(out.failed);
	str_release(&out);
}

/* ---- Properties ----------------------------------------------------------------------------- */

/* A number as significant digits and a decimal exponent, to be spelled in many ways. */
static const char *random_value_digits(void)
{
	char text[40];
	size_t size = 1 + pick(&random_env, 24), at = 0;
	for (size_t i = 0; i < size; i++)
		text[at++] = (char)('1' + pick(&random_env, 9));
	return arena_strndup(&arena, text, at);
}

static struct json *random_value(int depth)
{
	static const char *const strings[] = {"",
	                                      "a",
	                                      "key",
	                                      "\xC3\xA9",
	                                      "\xEF\xAC\xB3",
	                                      "\"\\/",
	                                      "\n",
	                                      "\x7F",
	                                      "\xE2\x82\xAC uro",
	                                      "\xF0\x9F\x98\x80",
	                                      "b",
	                                      "longer than eight bytes"};
	struct json *value = arena_alloc(&arena, sizeof *value);
	value->type = (enum json_type)pick(&random_env, depth ? 7 : 5);
	if (value->type == JSON_NUMBER) {
		value->text = random_value_digits();
		value->size = pick(&random_env, 60); /* the exponent, plus 30 */
		value->name_size = pick(&random_env, 2);
	} else if (value->type == JSON_STRING) {
		value->text = strings[pick(&random_env, COUNT(strings))];
		value->size = strlen(value->text);
	}
	size_t children = value->type >= JSON_ARRAY ? pick(&random_env, 40 / (size_t)(4 - depth)) : 0;
	for (size_t i = 0; i < children; i++) {
		struct json *child = random_value(depth - 1);
		child->name = arena_printf(&arena, "%s%zu", strings[pick(&random_env, COUNT(strings))], i);
		child->next = value->child;
		value->child = child;
	}
	return value;
}

static void spell_blank(struct str *out)
{
	for (size_t left = pick(&random_env, 3); left; left--)
		str_addc(out, " \t\r\n"[pick(&random_env, 4)]);
}

static void spell_number(struct str *out, const struct json *value)
{
	size_t size = strlen(value->text), split = pick(&random_env, size + 1);
	int exponent = (int)value->size - 30 + (int)(size - split);
	str_adds(out, value->name_size ? "-" : "");
	str_addf(out, "%.*s", (int)split, value->text);
	if (split == 0)
		str_addc(out, '0');
	size_t zeros = pick(&random_env, 3);
	if (split < size || zeros)
		str_addf(out, ".%s%.*s", value->text + split, (int)zeros, "00");
	if (exponent || pick(&random_env, 2))
		str_addf(out, pick(&random_env, 2) ? "e%d" : "E%+03d", exponent);
}

static void spell_string(struct str *out, const char *text)
{
	str_addc(out, '"');
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;
		bool must = byte < 0x20 || byte == '"' || byte == '\\';
		if (must || (byte < 0x80 && pick(&random_env, 3) == 0))
			str_addf(out, pick(&random_env, 2) ? "\\u%04x" : "\\u%04X", byte);
		else
			str_addc(out, *text);
	}
	str_addc(out, '"');
}

static void spell(struct str *out, const struct json *value);

static void spell_children(struct str *out, const struct json *value)
{
	const struct json *children[64];
	size_t count = 0;
	for (const struct json *child = value->child; child; child = child->next)
		children[count++] = child;
	for (size_t i = count; value->type == JSON_OBJECT && i > 1; i--) {
		size_t other = pick(&random_env, i);
		const struct json *kept = children[i - 1];
		children[i - 1] = children[other];
		children[other] = kept;
	}
	for (size_t i = 0; i < count; i++) {
		str_adds(out, i ? "," : "");
		spell_blank(out);
		if (value->type == JSON_OBJECT) {
			spell_string(out, children[i]->name);
			spell_blank(out);
			str_addc(out, ':');
		}
		spell(out, children[i]);
	}
}

static void spell(struct str *out, const struct json *value)
{
	spell_blank(out);
	switch (value->type) {
	case JSON_NULL: str_adds(out, "null"); break;
	case JSON_FALSE: str_adds(out, "false"); break;
	case JSON_TRUE: str_adds(out, "true"); break;
	case JSON_NUMBER: spell_number(out, value); break;
	case JSON_STRING: spell_string(out, value->text); break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		str_addc(out, value->type == JSON_ARRAY ? '[' : '{');
		spell_children(out, value);
		str_addc(out, value->type == JSON_ARRAY ? ']' : '}');
		break;
	}
	spell_blank(out);
}

static void spelling_does_not_change_the_bytes(void **state)
{
	(void)state;
	size_t spelled_differently = 0;
	for (int i = 0; i < 1500; i++) {
		struct json *value = random_value(3);
		struct str one = STR_INIT(1 << 20), two = STR_INIT(1 << 20);
		spell(&one, value);
		spell(&two, value);
		spelled_differently += strcmp(one.data, two.data) != 0;
		assert_string_equal(canon(one.data), canon(two.data));
		str_release(&one);
		str_release(&two);
		arena_release(&arena);
	}
	assert_true(spelled_differently > 1000);
}

/* The widest numbers that are read: their canonical forms are longer than they are. */
static void numbers_at_their_limits_are_read_again(void **state)
{
	(void)state;
	char digits[JSON_NUMBER_DIGITS_MAX + 64];
	static const char *const tails[] = {"",       ".0",         "000000000000000",
	                                    "e-4085", "e999995920", "e-999999999"};
	for (size_t i = 0; i < COUNT(tails); i++) {
		memset(digits, '7', JSON_NUMBER_DIGITS_MAX);
		digits[0] = '-';
		strcpy(digits + JSON_NUMBER_DIGITS_MAX + 1, tails[i]);
		digits[JSON_NUMBER_DIGITS_MAX] = '7';
		const char *once = canon(digits);
		assert_string_equal(canon(once), once);
	}
	assert_string_equal(canon("9.9e999999999"), "9.9e+999999999");
	assert_string_equal(canon("9.9e+999999999"), "9.9e+999999999");
}

static void the_canonical_form_is_a_fixed_point(void **state)
{
	(void)state;
	for (int i = 0; i < 1500; i++) {
		struct str text = STR_INIT(1 << 20);
		spell(&text, random_value(3));
		const char *once = canon(text.data);
		assert_string_equal(canon(once), once);
		str_release(&text);
		arena_release(&arena);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(the_oracle_prints_the_table_of_appendix_b),
	    TEST(numbers_of_appendix_b_are_written_as_it_says),
	    TEST(numbers_agree_with_rfc_8785_wherever_its_decimal_has_the_same_value),
	    TEST(every_double_is_written_as_rfc_8785_does),
	    TEST(numbers_that_a_double_would_change_keep_their_digits),
	    TEST(the_exponent_form_begins_where_ecmascript_says),
	    TEST(notations_of_one_value_are_one_text),
	    TEST(different_values_are_different_texts),
	    TEST(number_order_is_exact),
	    TEST(number_order_agrees_with_decimals_and_with_canonical_texts),
	    TEST(members_are_sorted_by_utf16_code_units),
	    TEST(name_order_is_that_of_code_units),
	    TEST(strings_are_escaped_no_more_than_needed),
	    TEST(escapes_are_found_wherever_they_stand),
	    TEST(unicode_is_not_normalised),
	    TEST(arrays_keep_their_order_and_objects_do_not),
	    TEST(sorting_ignores_the_locale),
	    TEST(structures_are_sorted_at_every_level),
	    TEST(values_are_written_as_the_standard_shows_them),
	    TEST(weird_names_are_sorted_too),
	    TEST(objects_of_any_size_are_sorted),
	    TEST(long_pieces_pass_the_gathering_buffer),
	    TEST(an_output_beyond_its_cap_fails),
	    TEST(a_value_deeper_than_any_text_fails),
	    TEST(spelling_does_not_change_the_bytes),
	    TEST(numbers_at_their_limits_are_read_again),
	    TEST(the_canonical_form_is_a_fixed_point),
	};
	return cmocka_run_group_tests_name("canon", tests, NULL, NULL);
}
