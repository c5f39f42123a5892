/* SPDX-License-Identifier: Apache-2.0 */
/* Heads and chunks of requests: whatever two readers could take for two things is refused (K05). */
#include "unit.h"

#include "net/chunks.h"
#include "net/head.h"

#include <stdio.h>
#include <string.h>

/* ---- Heads ---------------------------------------------------------------------------------- */

static struct arena arena;

/* The head of a text, which ends with it. */
static struct head read(const char *text, size_t size)
{
	struct head head;
	size_t scanned = 0;
	arena_release(&arena);
	assert_int_equal(head_size(text, size, &scanned), size);
	head_read(&head, &arena, arena_strndup(&arena, text, size), size);
	return head;
}

#define READ(text) read(text, sizeof(text) - 1)

static void a_good_head_is_read_as_it_stands(void **state)
{
	(void)state;
	bool many;
	struct head head = READ("POST /a?b=c HTTP/1.1\r\nHost: x\r\nX-A:  b c\t \r\nx-a:\r\n"
	                        "Content-Length: 0012\r\nExpect: 100-Continue\r\n\r\n");
	assert_null(head.wrong);
	assert_string_equal(head.method, "POST");
	assert_string_equal(head.target, "/a?b=c");
	assert_int_equal(head.count, 5);
	assert_string_equal(head.fields[1].value, "b c");
	assert_string_equal(head.fields[2].value, "");
	assert_int_equal(head.length, 12);
	assert_true(head.keep_alive && head.wants_continue && !head.chunked);
	assert_string_equal(head_find(&head, "HOST", &many), "x");
	assert_false(many);
	assert_null(head_find(&head, "X-A", &many));
	assert_true(many);
	assert_null(head_find(&head, "X-B", &many));
	assert_false(many);
	arena_release(&arena);
}

static void who_wants_to_keep_the_connection_is_told_by_version_and_header(void **state)
{
	(void)state;
	assert_true(READ("GET / HTTP/1.1\r\nHost: x\r\n\r\n").keep_alive);
	assert_true(READ("GET / HTTP/1.9\r\nHost: x\r\n\r\n").keep_alive);
	assert_false(READ("GET / HTTP/1.0\r\n\r\n").keep_alive);
	assert_true(READ("GET / HTTP/1.0\r\nConnection: te, Keep-Alive\r\n\r\n").keep_alive);
	assert_false(READ("GET / HTTP/1.1\r\nHost: x\r\nConnection: a\r\nConnection: b ,Close\r\n\r\n")
	                 .keep_alive);
	assert_true(READ("GET / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\n\r\n").keep_alive);
	arena_release(&arena);
}

static void what_is_no_head_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
	    "nonsense\r\n\r\n",
	    "GET /\r\n\r\n",
	    "GET / HTTP/1.1 \r\nHost: x\r\n\r\n",
	    "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
	    "GET / x HTTP/1.1\r\nHost: x\r\n\r\n",
	    " GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	    "GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n",
	    "G(T / HTTP/1.1\r\nHost: x\r\n\r\n",
	    "GGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGG / HTTP/1.1\r\nHost: x\r\n\r\n",
	    "GET / HTTP/2.0\r\nHost: x\r\n\r\n",
	    "GET / HTTP/1.\r\nHost: x\r\n\r\n",
	    "GET / HTTP/1.10\r\nHost: x\r\n\r\n",
	    "GET / http/1.1\r\nHost: x\r\n\r\n",
	    "GET /\x80 HTTP/1.1\r\nHost: x\r\n\r\n",
	    "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
	    "GET / HTTP/1.1\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
	    "GET / HTTP/1.1\nHost: x\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\n\n",
	    "GET / HTTP/1.1\r\nHost: x\n\n",
	    "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\n\tfolded\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nA: b\rC: d\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nA: \x7f\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\n: a\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nContent-Length;: 3\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked;a=b\r\n\r\n",
	    ("GET / HTTP/1.1\r\nHost: x\r\n"
	     "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
	    "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue, a\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: x\r\nExpect: a\r\n\r\n",
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct head head = read(bad[i], strlen(bad[i]));
		if (!head.wrong || head.keep_alive)
			fail_msg("%s", bad[i]);
	}
	static const char nul[] = "GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n";
	assert_non_null(read(nul, sizeof nul - 1).wrong);
	arena_release(&arena);
}

static void only_a_token_is_a_name_of_a_field(void **state)
{
	(void)state;
	for (int byte = 1; byte < 256; byte++) {
		char text[64];
		int size = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: x\r\nA%cB: c\r\n\r\n",
		                    byte);
		bool good = strchr("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
		                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ:",
		                   byte) != NULL; /* a colon ends it earlier */
		if (byte != '\n')
			assert_int_equal(!read(text, (size_t)size).wrong, good);
	}
	arena_release(&arena);
}

static void a_length_that_no_number_holds_is_more_than_any_limit(void **state)
{
	(void)state;
	assert_true(
	    READ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n").length ==
	    INT64_MAX);
	assert_true(READ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n")
	                .length == INT64_MAX);
	assert_true(
	    READ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551617\r\n\r\n").length ==
	    INT64_MAX);
	arena_release(&arena);
}

static void headers_beyond_the_most_are_refused(void **state)
{
	(void)state;
	for (int count = HEAD_FIELDS_MAX - 2; count < HEAD_FIELDS_MAX + 2; count++) {
		char text[4096];
		size_t size = (size_t)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: x\r\n");
		for (int i = 1; i < count; i++)
			size += (size_t)snprintf(text + size, sizeof text - size, "A: %d\r\n", i);
		size += (size_t)snprintf(text + size, sizeof text - size, "\r\n");
		assert_int_equal(!read(text, size).wrong, count <= HEAD_FIELDS_MAX);
	}
	arena_release(&arena);
}

static void its_end_is_found_however_it_comes(void **state)
{
	(void)state;
	static const char *const heads[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "a\n\n", "a\r\n\n",
	                                    "a\n\r\n"};
	for (size_t i = 0; i < COUNT(heads); i++) {
		char text[64];
		size_t whole = (size_t)snprintf(text, sizeof text, "%sbody\r\n\r\n", heads[i]);
		whole -= strlen("body\r\n\r\n");
		for (size_t piece = 1; piece < 5; piece++) {
			size_t scanned = 0, size = 0, found = 0;
			for (; !found && size < strlen(text); size += piece)
				found = head_size(text, size < strlen(text) ? size : strlen(text), &scanned);
			assert_int_equal(found ? found : head_size(text, strlen(text), &scanned), whole);
		}
	}
}

static void what_can_not_become_a_head_is_seen_at_its_beginning(void **state)
{
	(void)state;
	static const char *const may[] = {"",
	                                  "G",
	                                  "GET",
	                                  "GET ",
	                                  "GET /",
	                                  "GET / HTTP/1.1",
	                                  "GET / HTTP/1.1\r",
	                                  "GET / HTTP/1.1\r\nHo"};
	static const char *const may_not[] = {"\x16\x03\x01",
	                                      " ",
	                                      "\t",
	                                      "\n",
	                                      "GET\t",
	                                      "GET /\r\n",
	                                      "nonsense\r\n",
	                                      "GET / HTTP/1.1\n",
	                                      "{",
	                                      "GGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGG"};
	for (size_t i = 0; i < COUNT(may); i++)
		assert_true(head_may_begin(may[i], strlen(may[i])));
	for (size_t i = 0; i < COUNT(may_not); i++)
		assert_false(head_may_begin(may_not[i], strlen(may_not[i])));
}

/* ---- Chunks --------------------------------------------------------------------------------- */

/* What a body holds, read in pieces of a size; "!" where it is refused, "?" where it does not end.
 * `*ret_used`: of the text. */
static const char *body_of(const char *text, size_t size, size_t piece, size_t *ret_used)
{
	static char out[4096];
	struct chunks chunks = {0};
	size_t at = 0, end = 0, written = 0;
	for (;;) {
		size_t used;
		enum chunks_found found = chunks_read(&chunks, text + at, end - at, &used);
		at += used;
		*ret_used = at;
		if (found == CHUNKS_END || found == CHUNKS_WRONG) {
			assert_int_equal(found == CHUNKS_WRONG, chunks.wrong != NULL);
			out[written] = 0;
			return chunks.wrong ? "!" : out;
		}
		if (found == CHUNKS_DATA && at < end) {
			size_t most = end - at < chunks.left ? end - at : (size_t)chunks.left;
			memcpy(out + written, text + at, most);
			written += most;
			at += most;
			chunks.left -= most;
			continue;
		}
		if (end == size)
			return "?";
		end = end + piece < size ? end + piece : size;
	}
}

static void chunks_are_read_however_they_come(void **state)
{
	(void)state;
	static const struct {
		const char *text, *body;
		size_t rest; /* behind it */
	} cases[] = {
	    {"0\r\n\r\nGET /", "", 5},
	    {"5\r\nhello\r\n0\r\n\r\n", "hello", 0},
	    {"5;a=b;c=\"d\"\r\nhello\r\n00\r\n\r\n", "hello", 0},
	    {"5 ; a\r\nhello\r\n0;x\r\n\r\n", "hello", 0},
	    {"1\r\nh\r\nA\r\n0123456789\r\na\r\n0123456789\r\n0\r\nX-A: b\r\nX-B:\r\n\r\nx",
	     "h01234567890123456789", 1},
	    {"5\r\nhello\r\n", "?", 0},
	    {"\r\n", "!", 0},
	    {"x\r\n", "!", 0},
	    {"0x5\r\nhello\r\n0\r\n\r\n", "!", 0},
	    {"+5\r\nhello\r\n0\r\n\r\n", "!", 0},
	    {" 5\r\nhello\r\n0\r\n\r\n", "!", 0},
	    {"5\nhello\r\n0\r\n\r\n", "!", 0},
	    {"5\r\nhello\n0\r\n\r\n", "!", 0},
	    {"5\r\nhello\r\n0\n\r\n", "!", 0},
	    {"5\r\nhello\r\n0\r\n\n", "!", 0},
	    {"5;a\nb\r\nhello\r\n0\r\n\r\n", "!", 0},
	    {"5\r\nhello!\r\n0\r\n\r\n", "!", 0},
	    {"5\rhello\r\n0\r\n\r\n", "!", 0},
	    {"1000000000000000\r\n", "!", 0},
	    {"0\r\nX A: b\r\n\r\n", "!", 0},
	    {"0\r\nX;: b\r\n\r\n", "!", 0},
	    {"0\r\n: b\r\n\r\n", "!", 0},
	    {"0\r\nX: b\nY: c\r\n\r\n", "!", 0},
	    {"0\r\n folded\r\n\r\n", "!", 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		for (size_t piece = 1; piece < 8; piece++) {
			size_t used, size = strlen(cases[i].text);
			const char *body = body_of(cases[i].text, size, piece, &used);
			if (strcmp(body, cases[i].body) != 0)
				fail_msg("%s: %s", cases[i].text, body);
			if (*body != '!')
				assert_int_equal(size - used, cases[i].rest);
		}
}

static void extensions_and_trailers_are_bounded(void **state)
{
	(void)state;
	static char text[3 * CHUNKS_EXTRA_MAX];
	static const char *const frames[][2] = {{"5;", "\r\nhello\r\n0\r\n\r\n"},
	                                        {"0\r\nX:", "\r\n\r\n"}};
	for (size_t i = 0; i < COUNT(frames); i++)
		for (size_t more = CHUNKS_EXTRA_MAX - 10; more < CHUNKS_EXTRA_MAX + 10; more++) {
			size_t used, size = (size_t)snprintf(text, sizeof text, "%s%*s%s", frames[i][0],
			                                     (int)more, "x", frames[i][1]);
			size_t extra = more + (i ? 2 : 1); /* with what begins it */
			assert_int_equal(*body_of(text, size, 4096, &used) == '!', extra > CHUNKS_EXTRA_MAX);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_good_head_is_read_as_it_stands),
	    cmocka_unit_test(who_wants_to_keep_the_connection_is_told_by_version_and_header),
	    cmocka_unit_test(what_is_no_head_is_refused),
	    cmocka_unit_test(only_a_token_is_a_name_of_a_field),
	    cmocka_unit_test(a_length_that_no_number_holds_is_more_than_any_limit),
	    cmocka_unit_test(headers_beyond_the_most_are_refused),
	    cmocka_unit_test(its_end_is_found_however_it_comes),
	    cmocka_unit_test(what_can_not_become_a_head_is_seen_at_its_beginning),
	    cmocka_unit_test(chunks_are_read_however_they_come),
	    cmocka_unit_test(extensions_and_trailers_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
