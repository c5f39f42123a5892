/* SPDX-License-Identifier: Apache-2.0 */
/* What the JSON reader keeps, and what it refuses, with the words and the place it says it with. */
#include "unit.h"

#include "base/json.h"
#include "base/json_shape.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;

static int clean_up(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static struct json *read_sized(const char *text, size_t size)
{
	struct json *value = NULL;
	struct ibid_err err;
	if (json_read(&arena, text, size, 0, &value, &err))
		fail_msg("%s: %s", text, err.text);
	return value;
}

static struct json *read(const char *text)
{
	return read_sized(text, strlen(text));
}

static void refuse_sized(const char *text, size_t size, enum ibid_code code, const char *message)
{
	struct json untouched, *value = &untouched;
	struct ibid_err err = {0};
	assert_int_equal(json_read(&arena, text, size, 0, &value, &err), code);
	assert_ptr_equal(value, &untouched);
	assert_int_equal(err.code, code);
	assert_string_equal(err.text, message);
}

static void refuse(const char *text, const char *message)
{
	refuse_sized(text, strlen(text), IBID_INVALID, message);
}

static void literals_and_containers_are_read_in_the_order_of_the_text(void **state)
{
	(void)state;
	struct json *root = read(" {\"b\" : [null, true,false ,\t7] ,\r\n\"a\":{} } ");
	assert_int_equal(root->type, JSON_OBJECT);
	assert_int_equal(root->size, 2);
	assert_null(root->name);
	assert_null(root->next);
	struct json *list = root->child;
	assert_string_equal(list->name, "b");
	assert_int_equal(list->name_size, 1);
	assert_int_equal(list->type, JSON_ARRAY);
	assert_int_equal(list->size, 4);
	assert_int_equal(list->child->type, JSON_NULL);
	assert_int_equal(list->child->next->type, JSON_TRUE);
	assert_int_equal(list->child->next->next->type, JSON_FALSE);
	assert_int_equal(list->child->next->next->next->type, JSON_NUMBER);
	assert_null(list->child->next->next->next->next);
	assert_null(list->child->name);
	assert_string_equal(list->next->name, "a");
	assert_int_equal(list->next->type, JSON_OBJECT);
	assert_int_equal(list->next->size, 0);
	assert_null(list->next->child);
}

static void numbers_keep_their_text(void **state)
{
	(void)state;
	static const char *const texts[] = {"0",     "-0",     "1.10",     "11e-1",           "1E+400",
	                                    "-12.0", "1e-400", "0.000e10", "9007199254740993"};
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct json *value = read(texts[i]);
		assert_int_equal(value->type, JSON_NUMBER);
		assert_int_equal(value->size, strlen(texts[i]));
		assert_string_equal(value->text, texts[i]);
	}
}

static void strings_are_unescaped(void **state)
{
	(void)state;
	struct json *value = read("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00E9\\u20ac\\uD83D\\ude00\"");
	assert_string_equal(value->text, "\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
	assert_int_equal(value->size, 18);
	value = read("\"plain text of more than eight bytes, then \\n and the rest of it\"");
	assert_string_equal(value->text,
	                    "plain text of more than eight bytes, then \n and the rest of it");
}

static void an_escaped_nul_is_kept_and_counted(void **state)
{
	(void)state;
	struct json *value = read("{\"a\\u0000b\":\"\\u0000\"}");
	assert_int_equal(value->child->name_size, 3);
	assert_memory_equal(value->child->name, "a\0b", 4);
	assert_int_equal(value->child->size, 1);
	assert_memory_equal(value->child->text, "\0", 2);
}

static void every_well_formed_utf8_length_is_read(void **state)
{
	(void)state;
	static const char *const texts[] = {"\x7F",         "\xC2\x80",         "\xDF\xBF",
	                                    "\xE0\xA0\x80", "\xED\x9F\xBF",     "\xEE\x80\x80",
	                                    "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"};
	for (size_t i = 0; i < COUNT(texts); i++) {
		char quoted[16];
		snprintf(quoted, sizeof quoted, "\"%s\"", texts[i]);
		assert_string_equal(read(quoted)->text, texts[i]);
	}
}

static void malformed_utf8_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
	    "\x80",         "\xC0\x80",         "\xC1\xBF",         "\xE0\x9F\xBF",     "\xED\xA0\x80",
	    "\xE2\x82",     "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",
	    "\xF0\x9F\x98", "\xE2\x82\x41",
	};
	for (size_t i = 0; i < COUNT(texts); i++) {
		char quoted[16];
		snprintf(quoted, sizeof quoted, "\"a%s\"", texts[i]);
		refuse(quoted, "invalid UTF-8 at line 1, column 3");
	}
	refuse_sized("\"\xE2\x82", 3, IBID_INVALID, "invalid UTF-8 at line 1, column 2");
}

static void lone_surrogates_are_refused(void **state)
{
	(void)state;
	refuse("\"\\ud800\"", "lone surrogate \\ud800 at line 1, column 2");
	refuse("\"\\uDBFFx\"", "lone surrogate \\udbff at line 1, column 2");
	refuse("\"\\udc00\"", "lone surrogate \\udc00 at line 1, column 2");
	refuse("\"\\ud800\\n\"", "lone surrogate \\ud800 at line 1, column 2");
	refuse("\"\\ud800\\u0041\"", "lone surrogate \\ud800 at line 1, column 2");
	refuse("\"\\ud800\\ud800\"", "lone surrogate \\ud800 at line 1, column 2");
	refuse("\"\\udc00\\ud800\"", "lone surrogate \\udc00 at line 1, column 2");
	refuse("\"\\ud800\\", "lone surrogate \\ud800 at line 1, column 2");
}

static void bad_escapes_are_refused(void **state)
{
	(void)state;
	refuse("\"\\x\"", "unknown escape in a string at line 1, column 2");
	refuse("\"ab\\'\"", "unknown escape in a string at line 1, column 4");
	refuse("\"\\u12g4\"", "\\u without four hexadecimal digits at line 1, column 2");
	refuse("\"\\u123\"", "\\u without four hexadecimal digits at line 1, column 2");
	refuse("\"\\U0041\"", "unknown escape in a string at line 1, column 2");
	refuse("\"\\", "unexpected end of text: the rest of an escape is missing at line 1, column 3");
	refuse_sized("\"\\\0\"", 4, IBID_INVALID, "unknown escape in a string at line 1, column 2");
}

static void control_characters_in_strings_are_refused_wherever_they_stand(void **state)
{
	(void)state;
	for (unsigned byte = 0; byte < 0x20; byte++) {
		for (size_t at = 1; at < 20; at++) {
			char text[] = "\"abcdefghijklmnopqrstuvw\"", message[96];
			text[at] = (char)byte;
			snprintf(message, sizeof message,
			         "control character 0x%02X in a string must be escaped at line 1, column %zu",
			         byte, at + 1);
			refuse_sized(text, sizeof text - 1, IBID_INVALID, message);
		}
	}
}

static void numbers_outside_the_grammar_are_refused(void **state)
{
	(void)state;
	refuse("01", "a number may not have leading zeros at line 1, column 2");
	refuse("-00.5", "a number may not have leading zeros at line 1, column 3");
	refuse("-", "unexpected end of text: a digit is missing at line 1, column 2");
	refuse("[-]", "expected a digit, found ']' at line 1, column 3");
	refuse("[1.]", "expected a digit, found ']' at line 1, column 4");
	refuse("1.e5", "expected a digit, found 'e' at line 1, column 3");
	refuse("1e", "unexpected end of text: a digit is missing at line 1, column 3");
	refuse("1e+", "unexpected end of text: a digit is missing at line 1, column 4");
	refuse("[.5]", "expected a value, found '.' at line 1, column 2");
	refuse("+1", "expected a value, found '+' at line 1, column 1");
	refuse("NaN", "expected a value, found 'N' at line 1, column 1");
	refuse("-Infinity", "expected a digit, found 'I' at line 1, column 2");
	refuse("0x10", "trailing text after the value at line 1, column 2");
	refuse("1 2", "trailing text after the value at line 1, column 3");
}

static void structure_outside_the_grammar_is_refused(void **state)
{
	(void)state;
	refuse("", "unexpected end of text: a value is missing at line 1, column 1");
	refuse(" \n ", "unexpected end of text: a value is missing at line 2, column 2");
	refuse("[1,]", "expected a value, found ']' at line 1, column 4");
	refuse("[,1]", "expected a value, found ',' at line 1, column 2");
	refuse("[1 2]", "expected ',' or ']', found '2' at line 1, column 4");
	refuse("[1}", "expected ',' or ']', found '}' at line 1, column 3");
	refuse("[1", "unexpected end of text: ',' or ']' is missing at line 1, column 3");
	refuse("{\"a\":1", "unexpected end of text: ',' or '}' is missing at line 1, column 7");
	refuse("{\"a\":1]", "expected ',' or '}', found ']' at line 1, column 7");
	refuse("{\"a\":1,}", "expected a member name, found '}' at line 1, column 8");
	refuse("{\"a\" 1}", "expected ':', found '1' at line 1, column 6");
	refuse("{\"a\":}", "expected a value, found '}' at line 1, column 6");
	refuse("{a:1}", "expected a member name, found 'a' at line 1, column 2");
	refuse("{\"a", "unexpected end of text: the end of a string is missing at line 1, column 4");
	refuse("{} x", "trailing text after the value at line 1, column 4");
	refuse("nul", "expected a value, found 'n' at line 1, column 1");
	refuse("[truE]", "expected a value, found 't' at line 1, column 2");
	refuse("'a'", "expected a value, found ''' at line 1, column 1");
}

static void comments_bom_nul_and_other_blanks_are_refused(void **state)
{
	(void)state;
	refuse("/**/1", "expected a value, found '/' at line 1, column 1");
	refuse("[1,//\n2]", "expected a value, found '/' at line 1, column 4");
	refuse("\xEF\xBB\xBF{}", "expected a value, found byte 0xEF at line 1, column 1");
	refuse_sized("1\0", 2, IBID_INVALID, "trailing text after the value at line 1, column 2");
	refuse_sized("\0", 1, IBID_INVALID, "expected a value, found byte 0x00 at line 1, column 1");
	refuse("[1,\v2]", "expected a value, found byte 0x0B at line 1, column 4");
	refuse("\f1", "expected a value, found byte 0x0C at line 1, column 1");
}

static void errors_name_line_and_column_in_bytes(void **state)
{
	(void)state;
	refuse("{\n \"\xC3\xA9\": tru\n}", "expected a value, found 't' at line 2, column 8");
	refuse("[\r\n\r\n  x]", "expected a value, found 'x' at line 3, column 3");
}

/* A03 */
static void duplicate_member_names_are_refused(void **state)
{
	(void)state;
	refuse("{\"amount\":1, \"amount\":2}", "duplicate member \"amount\" at line 1, column 14");
	refuse("{\"\":1,\"\":1}", "duplicate member \"\" at line 1, column 7");
	refuse("[{\"x\":{\"b\":1,\n\"a\":2,\"b\":3}}]", "duplicate member \"b\" at line 2, column 7");
	refuse("{\"a\\u0000b\":1,\"a\\u0000c\":2,\"a\\u0000b\":3}",
	       "duplicate member \"a\\u0000b\" at line 1, column 28");
}

/* A03 */
static void names_that_differ_only_in_their_escapes_are_duplicates(void **state)
{
	(void)state;
	refuse("{\"a\":1,\"\\u0061\":2}", "duplicate member \"a\" at line 1, column 8");
	refuse("{\"\xF0\x9F\x98\x80\":1,\"\\ud83d\\ude00\":2}",
	       "duplicate member \"\xF0\x9F\x98\x80\" at line 1, column 11");
}

static void equal_names_in_different_objects_are_no_duplicates(void **state)
{
	(void)state;
	struct json *root = read("{\"a\":{\"a\":[{\"a\":1},{\"a\":2}]},\"b\":{\"a\":1}}");
	assert_int_equal(root->size, 2);
	assert_null(json_at(root, "/a/a/2"));
	assert_string_equal(json_at(root, "/a/a/1/a")->text, "2");
}

static void a_long_duplicate_name_is_cut_between_characters(void **state)
{
	(void)state;
	char name[81], text[256], message[256];
	memset(name, 'n', 59);
	memcpy(name + 59, "\xC3\xA9zzzzzzzzzzzzzzzzzzz", 22);
	snprintf(text, sizeof text, "{\"%s\":1,\"%s\":2}", name, name);
	snprintf(message, sizeof message, "duplicate member \"%.59s\"... at line 1, column 87", name);
	refuse(text, message);
}

/* {"m0":0,...}; with the name of member `twice`, unless it is `count`, again as the last one. */
static void build_object(struct str *text, size_t count, size_t twice)
{
	str_addc(text, '{');
	for (size_t i = 0; i < count; i++)
		str_addf(text, "%s\"m%zu\":0", i ? "," : "", i);
	if (twice < count)
		str_addf(text, ",\"m%zu\":0", twice);
	str_addc(text, '}');
}

/* A03 */
static void duplicates_are_found_among_any_number_of_names(void **state)
{
	(void)state;
	static const size_t counts[] = {1, 2, 15, 16, 17, 31, 32, 33, 64, 65, 1000, 100000};
	for (size_t i = 0; i < COUNT(counts); i++) {
		struct str text = STR_INIT(8 << 20);
		char message[96];
		build_object(&text, counts[i], counts[i]);
		assert_int_equal(read_sized(text.data, text.size)->size, counts[i]);
		str_clear(&text);
		build_object(&text, counts[i], counts[i] / 2);
		const char *second = strrchr(text.data, '"'), *first = second - 1;
		while (*first != '"')
			first--;
		snprintf(message, sizeof message, "duplicate member \"m%zu\" at line 1, column %zu",
		         counts[i] / 2, (size_t)(first - text.data) + 1);
		refuse_sized(text.data, text.size, IBID_INVALID, message);
		str_release(&text);
		arena_release(&arena);
	}
}

static void the_first_of_several_duplicates_is_reported(void **state)
{
	(void)state;
	struct str text = STR_INIT(4096);
	build_object(&text, 40, 40);
	text.data[text.size - 1] = ',';
	size_t column = text.size + 1;
	str_adds(&text, "\"m30\":1,\"m2\":1,\"m30\":1}");
	char message[96];
	snprintf(message, sizeof message, "duplicate member \"m30\" at line 1, column %zu", column);
	refuse(text.data, message);
	str_release(&text);
}

static void depth_ends_at_its_cap(void **state)
{
	(void)state;
	char text[2 * JSON_DEPTH_MAX + 3];
	memset(text, '[', JSON_DEPTH_MAX);
	memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	assert_int_equal(read_sized(text, (size_t)2 * JSON_DEPTH_MAX)->type, JSON_ARRAY);
	memset(text, '[', JSON_DEPTH_MAX + 1);
	memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	refuse_sized(text, sizeof text - 1, IBID_LIMIT, "more than 64 levels at line 1, column 65");
}

static void a_text_longer_than_its_cap_is_refused(void **state)
{
	(void)state;
	struct json *value;
	struct ibid_err err;
	assert_int_equal(json_read(&arena, "[1,2]", 5, 5, &value, &err), IBID_OK);
	assert_int_equal(json_read(&arena, "[1,2]", 5, 4, &value, &err), IBID_LIMIT);
	assert_string_equal(err.text, "the text is longer than 4 bytes at line 1, column 5");
}

static void number_texts_end_at_their_caps(void **state)
{
	(void)state;
	static char text[JSON_NUMBER_BYTES_MAX + 2];
	memset(text, '0', sizeof text);
	memset(text, '7', JSON_NUMBER_DIGITS_MAX);
	assert_int_equal(read_sized(text, JSON_NUMBER_BYTES_MAX)->size, JSON_NUMBER_BYTES_MAX);
	refuse_sized(text, JSON_NUMBER_BYTES_MAX + 1, IBID_LIMIT,
	             "a number may have at most 4096 bytes at line 1, column 1");
	text[JSON_NUMBER_DIGITS_MAX] = '7';
	refuse_sized(text, JSON_NUMBER_BYTES_MAX, IBID_LIMIT,
	             "a number may have at most 4080 significant digits at line 1, column 1");
}

static void exponents_end_at_their_cap(void **state)
{
	(void)state;
	static const char *const good[] = {"1e999999999",    "9.9e999999999", "1e-000999999999",
	                                   "0.1e-999999998", "0e999999999",   "-0.00e-999999999"};
	static const char *const bad[] = {"10e999999999", "0.1e-999999999", "[-99.9E999999999]"};
	for (size_t i = 0; i < COUNT(good); i++)
		assert_string_equal(read(good[i])->text, good[i]);
	for (size_t i = 0; i < COUNT(bad); i++)
		refuse_sized(bad[i], strlen(bad[i]), IBID_LIMIT,
		             *bad[i] == '['
		                 ? "a number may have exponents up to 999999999 at line 1, column 2"
		                 : "a number may have exponents up to 999999999 at line 1, column 1");
	refuse_sized("1e1000000000", 12, IBID_LIMIT,
	             "a number may have exponents up to 999999999 at line 1, column 3");
	refuse_sized("[0E-0099999999999999999999]", 27, IBID_LIMIT,
	             "a number may have exponents up to 999999999 at line 1, column 7");
}

static void an_arena_that_is_full_is_a_limit(void **state)
{
	(void)state;
	struct arena small;
	struct json *value;
	struct ibid_err err;
	char text[4001];
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = i % 2 ? '0' : ',';
	text[0] = '[';
	text[sizeof text - 1] = ']';
	for (size_t cap = 1; cap < 2000 * sizeof(struct json); cap += 997) {
		arena_init(&small, cap);
		assert_int_equal(json_read(&small, text, sizeof text, 0, &value, &err), IBID_LIMIT);
		arena_release(&small);
	}
	arena_init(&small, 1 << 20);
	assert_int_equal(json_read(&small, text, sizeof text, 0, &value, &err), IBID_OK);
	arena_release(&small);
}

static void members_are_found_by_name(void **state)
{
	(void)state;
	struct json *root = read("{\"a\":1,\"ab\":2,\"\":3,\"a\\u0000\":4}");
	assert_string_equal(json_member(root, "ab")->text, "2");
	assert_string_equal(json_member(root, "a")->text, "1");
	assert_string_equal(json_member(root, "")->text, "3");
	assert_null(json_member(root, "b"));
	assert_null(json_member(root->child, "a"));
	assert_null(json_member(read("[1]"), ""));
	assert_null(json_member(NULL, "a"));
}

static void pointers_follow_rfc_6901(void **state)
{
	(void)state;
	struct json *root = read("{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,"
	                         "\"g|h\":4,\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8,\"~1\":9}");
	static const struct {
		const char *pointer, *text;
	} cases[] = {{"/foo/0", "bar"}, {"/foo/1", "baz"}, {"/", "0"},     {"/a~1b", "1"},
	             {"/c%d", "2"},     {"/e^f", "3"},     {"/g|h", "4"},  {"/i\\j", "5"},
	             {"/k\"l", "6"},    {"/ ", "7"},       {"/m~0n", "8"}, {"/~01", "9"}};
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(json_at(root, cases[i].pointer)->text, cases[i].text);
	assert_ptr_equal(json_at(root, ""), root);
	assert_ptr_equal(json_at(root, "/foo"), root->child);
	static const char *const nowhere[] = {
	    "/foo/2", "/foo/-",   "/foo/00", "/foo/01", "/foo/+1", "/foo/",
	    "/fo",    "/fooo",    "/foo/0/", "//",      "/foo/1x", "/foo/18446744073709551616",
	    "foo",    "/foo/0/0", "/m~n",    "/m~2n",   "/~"};
	for (size_t i = 0; i < COUNT(nowhere); i++)
		if (json_at(root, nowhere[i]))
			fail_msg("%s leads somewhere", nowhere[i]);
	assert_null(json_at(NULL, ""));
}

static void pointers_are_checked(void **state)
{
	(void)state;
	static const char *const good[] = {"", "/", "/a", "/a/b", "/~0~1", "//"};
	static const char *const bad[] = {"a", "a/b", "/~", "/~2", "/a~", "~0", "#/a"};
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(json_pointer_ok(good[i]));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(json_pointer_ok(bad[i]));
}

/* The reader must never look beyond `size`; the sanitizer watches the exact-size copy. */
static void every_truncation_of_a_text_is_refused(void **state)
{
	(void)state;
	static const char text[] =
	    "{\"a\\u00e9\\ud83d\\ude00\":[-1.5e+3,true,false,null,\"\xE2\x82\xAC\"]}";
	for (size_t size = 0; size < sizeof text - 1; size++) {
		struct json *value;
		struct ibid_err err;
		char *copy = malloc(size + (size == 0));
		memcpy(copy, text, size);
		assert_int_equal(json_read(&arena, copy, size, 0, &value, &err), IBID_INVALID);
		free(copy);
	}
	assert_int_equal(read(text)->size, 1);
}

static bool has_shape(const char *text)
{
	return json_shape_ok(text, strlen(text));
}

/* Wherever a text is cut off, and whatever byte of it is another: the reader and the look at its
 * shape agree. */
static void shape_agrees_with_the_reader(void **state)
{
	(void)state;
	static const char text[] = "{ \"a\\n\\u00e9\": [1, -2.5e+3, {}, [], \"\", true], \"b\":null}";
	static const char bytes[] = "{}[]\",:\\ue1 -+.tn\n\x01";
	char one[sizeof text];
	for (size_t size = 0; size <= sizeof text - 1; size++) {
		struct json *value = NULL;
		struct ibid_err err = {0};
		assert_int_equal(json_shape_ok(text, size),
		                 !json_read(&arena, text, size, 0, &value, &err));
	}
	for (size_t at = 0; at < sizeof text - 1; at++)
		for (const char *byte = bytes; *byte; byte++) {
			struct json *value = NULL;
			struct ibid_err err = {0};
			memcpy(one, text, sizeof text);
			one[at] = *byte;
			bool reads = !json_read(&arena, one, sizeof text - 1, 0, &value, &err);
			bool repeats = strstr(err.text, "twice") || strstr(err.text, "duplicate");
			if (json_shape_ok(one, sizeof text - 1) != (reads || repeats))
				fail_msg("%s: %s", one, reads ? "it is read" : err.text);
		}
}

static void shape_is_blind_for_what_json_allows(void **state)
{
	(void)state;
	char deep[3 * JSON_SHAPE_DEPTH_MAX];
	memset(deep, '[', sizeof deep);
	assert_true(json_shape_ok(deep, sizeof deep)); /* nobody looks so deep */
	assert_false(json_shape_ok(deep, JSON_SHAPE_DEPTH_MAX));
	assert_true(has_shape("{\"a\":1,\"a\":2}"));
	assert_false(has_shape("not JSON"));
	assert_false(has_shape(""));
	assert_false(has_shape("1 2"));
	assert_false(has_shape("[1,]"));
	assert_false(has_shape("{\"a\":1,}"));
	assert_false(json_shape_ok("\"a\0\"", 4));
}

#define TEST(name) cmocka_unit_test_teardown(name, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(shape_agrees_with_the_reader),
	    TEST(shape_is_blind_for_what_json_allows),
	    TEST(literals_and_containers_are_read_in_the_order_of_the_text),
	    TEST(numbers_keep_their_text),
	    TEST(strings_are_unescaped),
	    TEST(an_escaped_nul_is_kept_and_counted),
	    TEST(every_well_formed_utf8_length_is_read),
	    TEST(malformed_utf8_is_refused),
	    TEST(lone_surrogates_are_refused),
	    TEST(bad_escapes_are_refused),
	    TEST(control_characters_in_strings_are_refused_wherever_they_stand),
	    TEST(numbers_outside_the_grammar_are_refused),
	    TEST(structure_outside_the_grammar_is_refused),
	    TEST(comments_bom_nul_and_other_blanks_are_refused),
	    TEST(errors_name_line_and_column_in_bytes),
	    TEST(duplicate_member_names_are_refused),
	    TEST(names_that_differ_only_in_their_escapes_are_duplicates),
	    TEST(equal_names_in_different_objects_are_no_duplicates),
	    TEST(a_long_duplicate_name_is_cut_between_characters),
	    TEST(duplicates_are_found_among_any_number_of_names),
	    TEST(the_first_of_several_duplicates_is_reported),
	    TEST(depth_ends_at_its_cap),
	    TEST(a_text_longer_than_its_cap_is_refused),
	    TEST(number_texts_end_at_their_caps),
	    TEST(exponents_end_at_their_cap),
	    TEST(an_arena_that_is_full_is_a_limit),
	    TEST(members_are_found_by_name),
	    TEST(pointers_follow_rfc_6901),
	    TEST(pointers_are_checked),
	    TEST(every_truncation_of_a_text_is_refused),
	};
	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
