/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a request as libcurl gets them: no text from outside is taken for its notation (K05). */
#include "unit.h"

#include "net/calls.h"
#include "net/header.h"

#include <string.h>

static const char allowed[] = "!#$%&'*+-.^_`|~0123456789"
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* NULL: it was refused, and nothing was added. */
static const char *line_of(struct call *call, const char *name, const char *value)
{
	struct ibid_err err = {0};
	call_release(call);
	enum ibid_code code = call_add_header(call, name, value, &err);
	assert_true(code == IBID_OK || code == IBID_INVALID);
	assert_true((code == IBID_OK) == (call->headers != NULL));
	return call->headers ? call->headers->data : NULL;
}

static void only_a_token_is_a_name(void **state)
{
	(void)state;
	struct call call = {0};
	assert_null(line_of(&call, "", "v"));
	for (int byte = 1; byte < 256; byte++) {
		char name[] = {'X', (char)byte, 'a', 0}, first[] = {(char)byte, 'X', 0};
		bool good = strchr(allowed, byte) != NULL;
		assert_int_equal(header_name_ok(name), good);
		assert_int_equal(line_of(&call, name, "v") != NULL, good);
		assert_int_equal(line_of(&call, first, "v") != NULL, good);
	}
	call_release(&call);
}

static void a_value_is_one_line(void **state)
{
	(void)state;
	struct call call = {0};
	for (int byte = 1; byte < 256; byte++) {
		char value[] = {'a', (char)byte, 'b', 0};
		bool good = byte == '\t' || (byte >= ' ' && byte != 0x7f);
		assert_int_equal(line_of(&call, "X-A", value) != NULL, good);
	}
	assert_null(line_of(&call, "X-A", "a\r\nHost: evil.example"));
	assert_string_equal(line_of(&call, "X-A", "a;b:c"), "X-A: a;b:c");
	call_release(&call);
}

/* To libcurl `Name:` takes a header away, and `Name;` sends it without a value. */
static void an_empty_value_is_sent_and_only_left_out_is_left_out(void **state)
{
	(void)state;
	struct call call = {0};
	struct ibid_err err = {0};
	assert_string_equal(line_of(&call, "X-A", ""), "X-A;");
	assert_string_equal(line_of(&call, "X-A", " \t "), "X-A;");
	assert_string_equal(line_of(&call, "X-A", ";"), "X-A: ;");
	assert_string_equal(line_of(&call, "X-A", ":"), "X-A: :");
	call_release(&call);
	assert_int_equal(call_leave_out(&call, "Expect", &err), IBID_OK);
	assert_string_equal(call.headers->data, "Expect:");
	call_release(&call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_a_token_is_a_name),
	    cmocka_unit_test(a_value_is_one_line),
	    cmocka_unit_test(an_empty_value_is_sent_and_only_left_out_is_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
