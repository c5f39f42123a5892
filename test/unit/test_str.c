/* SPDX-License-Identifier: Apache-2.0 */
/* The small parts that everything stands on: strings, arenas, errors, the environment, the log. */
#include "unit.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- str ------------------------------------------------------------------------------------ */

static void a_string_grows_and_stays_terminated(void **state)
{
	(void)state;
	struct str str = STR_INIT(1000);
	assert_string_equal(str_text(&str), "");
	for (size_t i = 0; i < 100; i++) {
		str_addf(&str, "%zu", i % 10);
		str_add(&str, "ab", 2);
		str_addc(&str, 'c');
		str_adds(&str, "d");
		assert_int_equal(str.size, 5 * (i + 1));
		assert_int_equal(strlen(str.data), str.size);
	}
	assert_memory_equal(str.data + 495, "9abcd", 6);
	assert_false(str.failed);
	str_release(&str);
	assert_null(str.data);
	assert_int_equal(str.cap, 1000);
}

static void appending_beyond_the_cap_fails_and_keeps_the_content(void **state)
{
	(void)state;
	struct str str = STR_INIT(5);
	str_adds(&str, "abcde");
	assert_false(str.failed);
	str_addc(&str, 'f');
	assert_true(str.failed);
	assert_string_equal(str.data, "abcde");
	str_add(&str, "", 0);
	assert_true(str.failed);
	str_clear(&str);
	assert_false(str.failed);
	assert_string_equal(str.data, "");
	str_addf(&str, "%s", "123456");
	assert_true(str.failed);
	assert_int_equal(str.size, 0);
	str_release(&str);
}

static void a_string_is_handed_over_whole_or_not_at_all(void **state)
{
	(void)state;
	struct str str = STR_INIT(5);
	size_t size = 99;
	assert_null(str_take(&str, &size));
	str_adds(&str, "abc");
	char *text = str_take(&str, &size);
	assert_string_equal(text, "abc");
	assert_int_equal(size, 3);
	assert_null(str.data);
	free(text);
	str_adds(&str, "abc");
	str_adds(&str, "def");
	assert_null(str_take(&str, &size));
	assert_int_equal(size, 3);
	assert_false(str.failed);
}

static void json_strings_are_quoted_and_escaped(void **state)
{
	(void)state;
	struct str str = STR_INIT(100);
	str_add_json(&str, "a\"\\/\b\f\n\r\t\0\x1f\x7f\xC3\xA9", 14);
	assert_string_equal(str.data, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\xC3\xA9\"");
	str_release(&str);
}

/* ---- utf8 ----------------------------------------------------------------------------------- */

static void utf8_sizes_are_exactly_those_of_well_formed_characters(void **state)
{
	(void)state;
	size_t good = 0;
	for (uint32_t first = 0x80; first < 0x100; first++) {
		for (uint32_t rest = 0; rest < 0x10000; rest++) {
			char bytes[4] = {(char)first, (char)(rest >> 8), (char)rest, (char)0x80};
			good += utf8_size(bytes, 3) == 3;
		}
	}
	assert_int_equal(good, 0x10000 - 0x800 - 0x800); /* without surrogates and shorter ones */
	assert_int_equal(utf8_size("", 0), 0);
	assert_int_equal(utf8_size("a", 1), 1);
	assert_int_equal(utf8_size("\0", 1), 1);
	assert_int_equal(utf8_size("\xC3\xA9", 2), 2);
	assert_int_equal(utf8_size("\xC3\xA9", 1), 0);
	assert_int_equal(utf8_size("\xF0\x9F\x98\x80", 4), 4);
	assert_int_equal(utf8_size("\xF0\x9F\x98\x80", 3), 0);
	assert_int_equal(utf8_size("\xF0\x9F\x98\x41", 4), 0);
}

static void a_width_is_that_of_a_terminal(void **state)
{
	static const struct {
		const char *text;
		size_t columns;
	} cases[] = {
	    {"", 0},
	    {"payment", 7},
	    {"\xC3\xA4\xE2\x82\xAC", 2},     /* ae, euro sign */
	    {"a\xCC\x88", 1},                /* a, combining diaeresis */
	    {"e\xCC\x81\xCC\xA3", 1},        /* two marks */
	    {"\xE6\x94\xAF\xE6\x89\x95", 4}, /* two Han characters */
	    {"\xED\x95\x9C", 2},             /* Hangul */
	    {"\xEF\xBC\xA1", 2},             /* fullwidth A */
	    {"\xEF\xBD\xB1", 1},             /* halfwidth katakana */
	    {"\xF0\x9F\x98\x80", 2},         /* a face */
	    {"a\xE2\x80\x8D\x62", 2},        /* zero width joiner */
	    {"\xFF\x41", 2},                 /* not well-formed */
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(utf8_width(cases[i].text, strlen(cases[i].text)), cases[i].columns);
}

static void a_cut_never_splits_a_character(void **state)
{
	(void)state;
	static const char text[] = "a\xC3\xA9\xF0\x9F\x98\x80z";
	static const size_t fits[] = {0, 1, 1, 3, 3, 3, 3, 7, 8, 8};
	for (size_t most = 0; most < COUNT(fits); most++)
		assert_int_equal(utf8_fit(text, 8, most), fits[most]);
}

/* ---- arena ---------------------------------------------------------------------------------- */

static void arena_memory_is_aligned_zeroed_and_apart(void **state)
{
	(void)state;
	struct arena arena = {0};
	unsigned char *last = NULL;
	for (size_t size = 0; size < 3000; size += 7) {
		unsigned char *memory = arena_alloc(&arena, size);
		assert_non_null(memory);
		assert_ptr_not_equal(memory, last);
		assert_int_equal((uintptr_t)memory % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(memory[i], 0);
		memset(memory, 0xAA, size);
		last = memory;
	}
	arena_release(&arena);
	assert_int_equal(arena.used, 0);
	assert_non_null(arena_alloc(&arena, 10));
	arena_release(&arena);
}

static void an_arena_ends_at_its_cap_and_remembers(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 10000);
	assert_non_null(arena_alloc(&arena, 9000));
	assert_false(arena.failed);
	assert_null(arena_alloc(&arena, 2000));
	assert_true(arena.failed);
	arena_release(&arena);
	assert_false(arena.failed);
	assert_null(arena_alloc(&arena, 10001));
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_array(&arena, SIZE_MAX / 8, 16));
	assert_true(arena.failed);
	arena_release(&arena);
}

static void arena_texts_are_copies(void **state)
{
	(void)state;
	struct arena arena = {0};
	char text[] = "copied";
	char *copy = arena_strdup(&arena, text), *part = arena_strndup(&arena, text, 4);
	text[0] = 'X';
	assert_string_equal(copy, "copied");
	assert_string_equal(part, "copi");
	assert_null(arena_strdup(&arena, NULL));
	assert_string_equal(arena_printf(&arena, "%s-%d", "a", 17), "a-17");
	arena_release(&arena);
}

/* ---- err ------------------------------------------------------------------------------------ */

static void an_error_says_its_code_and_what_to_do_next(void **state)
{
	(void)state;
	struct ibid_err err;
	assert_int_equal(err_set(&err, IBID_INVALID, "key is %s", "empty"), IBID_INVALID);
	assert_int_equal(err.code, IBID_INVALID);
	assert_int_equal(err.next, IBID_NEXT_NEVER);
	assert_string_equal(err.text, "key is empty");
	(void)err_set(&err, IBID_BUSY, "x");
	assert_int_equal(err.next, IBID_NEXT_LATER);
	(void)err_set(&err, IBID_UNKNOWN, "x");
	assert_int_equal(err.next, IBID_NEXT_SAME_KEY);
	assert_int_equal(err_set(NULL, IBID_IO, "x"), IBID_IO);
}

static void a_prefix_goes_before_the_text_and_long_texts_lose_their_end(void **state)
{
	(void)state;
	struct ibid_err err;
	char text[600];
	(void)err_set(&err, IBID_CONTRACT, "no such field");
	assert_int_equal(err_prefix(&err, "%s:%d", "pay.yaml", 3), IBID_CONTRACT);
	assert_string_equal(err.text, "pay.yaml:3: no such field");
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	(void)err_set(&err, IBID_CONTRACT, "%s", text);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	(void)err_prefix(&err, "here");
	assert_memory_equal(err.text, "here: xxx", 9);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	(void)err_prefix(&err, "%s", text);
	assert_memory_equal(err.text, "xxx", 3);
	assert_int_equal(err.text[sizeof err.text - 1], '\0');
}

static void every_code_has_a_name_of_its_own(void **state)
{
	(void)state;
	assert_string_equal(ibid_code_name(IBID_OK), "ok");
	assert_string_equal(ibid_code_name(IBID_NOT_FOUND), "not-found");
	assert_string_equal(ibid_code_name((enum ibid_code)999), "unlisted");
	for (int i = 0; i <= IBID_INTERNAL; i++)
		for (int k = 0; k < i; k++)
			assert_string_not_equal(ibid_code_name((enum ibid_code)i),
			                        ibid_code_name((enum ibid_code)k));
}

/* ---- env ------------------------------------------------------------------------------------ */

static void virtual_time_moves_only_when_moved(void **state)
{
	(void)state;
	struct env_virtual env;
	env_virtual_init(&env, 1000, 1);
	assert_int_equal(env_wall_us(&env.env), 1000);
	assert_int_equal(env_wall_us(&env.env), 1000);
	env_sleep_us(&env.env, 500);
	env_virtual_advance(&env, 7);
	assert_int_equal(env_wall_us(&env.env), 1507);
	assert_int_equal(env_steady_us(&env.env), 1507);
}

static void virtual_randomness_repeats_with_its_seed(void **state)
{
	(void)state;
	struct env_virtual a, b, c;
	unsigned char one[33] = {0}, two[33] = {0}, three[33] = {0}, zero[8] = {0};
	env_virtual_init(&a, 0, 42);
	env_virtual_init(&b, 0, 42);
	env_virtual_init(&c, 0, 43);
	env_random(&a.env, one, 32);
	env_random(&b.env, two, 32);
	env_random(&c.env, three, 32);
	assert_memory_equal(one, two, 33);
	assert_memory_not_equal(one, three, 32);
	assert_memory_not_equal(one + 24, zero, 8);
	assert_int_equal(one[32], 0);
}

static void the_system_has_time_and_randomness(void **state)
{
	(void)state;
	struct env *env = env_system();
	unsigned char one[16] = {0}, two[16] = {0};
	assert_true(env_wall_us(env) > INT64_C(1700000000000000));
	int64_t before = env_steady_us(env);
	assert_true(env_steady_us(env) >= before);
	env_random(env, one, sizeof one);
	env_random(env, two, sizeof two);
	assert_memory_not_equal(one, two, sizeof one);
}

/* ---- log ------------------------------------------------------------------------------------ */

struct heard {
	enum ibid_log_level level;
	size_t lines;
	struct str line;
};

static void hear(void *user, enum ibid_log_level level, const char *json)
{
	struct heard *heard = user;
	heard->level = level;
	heard->lines++;
	str_clear(&heard->line);
	str_adds(&heard->line, json);
}

static struct env_virtual log_env;
static struct heard heard;

static struct log test_log(void)
{
	env_virtual_init(&log_env, 1500000, 1);
	heard = (struct heard){.line = STR_INIT(1 << 20)};
	return (struct log){.fn = hear, .user = &heard, .env = &log_env.env};
}

static void a_log_line_is_one_json_object(void **state)
{
	(void)state;
	struct log log = test_log();
	LOG(&log, IBID_LOG_WARN, "store.reconnect", {"attempt", log_int(2)},
	    {"reason", log_text("a \"quoted\"\nline")}, {"none", log_text(NULL)},
	    {"least", log_int(INT64_MIN)});
	assert_string_equal(heard.line.data,
	                    "{\"time\":\"1970-01-01T00:00:01.500000Z\",\"level\":\"warn\","
	                    "\"event\":\"store.reconnect\",\"attempt\":2,"
	                    "\"reason\":\"a \\\"quoted\\\"\\nline\",\"none\":null,"
	                    "\"least\":-9223372036854775808}");
	assert_int_equal(heard.level, IBID_LOG_WARN);
	assert_int_equal(heard.lines, 1);
	log_fields(&log, IBID_LOG_DEBUG, "bare", NULL, 0);
	assert_string_equal(heard.line.data, "{\"time\":\"1970-01-01T00:00:01.500000Z\","
	                                     "\"level\":\"debug\",\"event\":\"bare\"}");
	str_release(&heard.line);
}

static void invalid_utf8_in_a_log_is_replaced(void **state)
{
	(void)state;
	struct log log = test_log();
	LOG(&log, IBID_LOG_INFO, "e", {"t", log_text("a\xFFz\xC3\xA9\xE2\x82")});
	assert_non_null(
	    strstr(heard.line.data, "\"t\":\"a\xEF\xBF\xBDz\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\"}"));
	str_release(&heard.line);
}

static void long_texts_in_a_log_are_cut_and_the_line_is_still_json(void **state)
{
	(void)state;
	struct log log = test_log();
	struct arena arena = {0};
	struct json *line;
	struct log_field fields[40];
	char text[6001];
	memset(text, '\x01', sizeof text);
	text[sizeof text - 1] = '\0';
	LOG(&log, IBID_LOG_INFO, "e", {"t", log_text(text)});
	assert_int_equal(json_read(&arena, heard.line.data, heard.line.size, 0, &line, NULL), IBID_OK);
	assert_int_equal(json_member(line, "t")->size, 4096 + 3);
	for (size_t i = 0; i < COUNT(fields); i++)
		fields[i] = (struct log_field){"t", log_text(text)};
	log_fields(&log, IBID_LOG_INFO, "too.long", fields, COUNT(fields));
	assert_int_equal(heard.lines, 2);
	assert_string_equal(heard.line.data, "{\"level\":\"error\",\"event\":\"log.lost\"}");
	arena_release(&arena);
	str_release(&heard.line);
}

static void a_log_without_a_listener_is_silent(void **state)
{
	(void)state;
	struct log log = test_log();
	log.fn = NULL;
	LOG(&log, IBID_LOG_ERROR, "e", {"n", log_int(1)});
	log_fields(NULL, IBID_LOG_ERROR, "e", NULL, 0);
	assert_int_equal(heard.lines, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_string_grows_and_stays_terminated),
	    cmocka_unit_test(appending_beyond_the_cap_fails_and_keeps_the_content),
	    cmocka_unit_test(a_string_is_handed_over_whole_or_not_at_all),
	    cmocka_unit_test(json_strings_are_quoted_and_escaped),
	    cmocka_unit_test(utf8_sizes_are_exactly_those_of_well_formed_characters),
	    cmocka_unit_test(a_width_is_that_of_a_terminal),
	    cmocka_unit_test(a_cut_never_splits_a_character),
	    cmocka_unit_test(arena_memory_is_aligned_zeroed_and_apart),
	    cmocka_unit_test(an_arena_ends_at_its_cap_and_remembers),
	    cmocka_unit_test(arena_texts_are_copies),
	    cmocka_unit_test(an_error_says_its_code_and_what_to_do_next),
	    cmocka_unit_test(a_prefix_goes_before_the_text_and_long_texts_lose_their_end),
	    cmocka_unit_test(every_code_has_a_name_of_its_own),
	    cmocka_unit_test(virtual_time_moves_only_when_moved),
	    cmocka_unit_test(virtual_randomness_repeats_with_its_seed),
	    cmocka_unit_test(the_system_has_time_and_randomness),
	    cmocka_unit_test(a_log_line_is_one_json_object),
	    cmocka_unit_test(invalid_utf8_in_a_log_is_replaced),
	    cmocka_unit_test(long_texts_in_a_log_are_cut_and_the_line_is_still_json),
	    cmocka_unit_test(a_log_without_a_listener_is_silent),
	};
	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
