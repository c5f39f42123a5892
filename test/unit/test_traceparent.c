/* SPDX-License-Identifier: Apache-2.0 */
/* K02: W3C trace context, as it is read and written. */
#include "unit.h"

#include "base/traceparent.h"

#include <stdlib.h>
#include <string.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"

static void what_is_a_traceparent_and_what_is_none(void **state)
{
	(void)state;
	static const struct {
		const char *text, *written; /* NULL: refused */
	} cases[] = {
	    {"00-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01"},
	    {"00-" TRACE "-" SPAN "-00", "00-" TRACE "-" SPAN "-00"},
	    {"00-" TRACE "-" SPAN "-03", "00-" TRACE "-" SPAN "-03"}, /* a random trace id */
	    {"00-" TRACE "-" SPAN "-ff", "00-" TRACE "-" SPAN "-03"}, /* flags that nobody knows */
	    {"00-" TRACE "-" SPAN "-08", "00-" TRACE "-" SPAN "-00"},
	    {"00-00000000000000000000000000000001-0000000000000001-01",
	     "00-00000000000000000000000000000001-0000000000000001-01"},
	    /* Higher versions: what 00 knows of them. */
	    {"01-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01"},
	    {"cc-" TRACE "-" SPAN "-03", "00-" TRACE "-" SPAN "-01"},
	    {"cc-" TRACE "-" SPAN "-01-", "00-" TRACE "-" SPAN "-01"},
	    {"cc-" TRACE "-" SPAN "-01-what-the-future-will-be-like", "00-" TRACE "-" SPAN "-01"},
	    {"cc-" TRACE "-" SPAN "-01.what", NULL},
	    {"cc-" TRACE "-" SPAN "-011", NULL},
	    {"ff-" TRACE "-" SPAN "-01", NULL},
	    {"ff-" TRACE "-" SPAN "-01-more", NULL},
	    /* Of version 00 nothing follows. */
	    {"00-" TRACE "-" SPAN "-01-", NULL},
	    {"00-" TRACE "-" SPAN "-01-what", NULL},
	    {"00-" TRACE "-" SPAN "-011", NULL},
	    {"00-" TRACE "-" SPAN "-01 ", NULL},
	    {" 00-" TRACE "-" SPAN "-01", NULL},
	    {"00-00000000000000000000000000000000-" SPAN "-01", NULL},
	    {"00-" TRACE "-0000000000000000-01", NULL},
	    {"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", NULL},
	    {"00-" TRACE "-B7AD6B7169203331-01", NULL},
	    {"00-" TRACE "-" SPAN "-0A", NULL},
	    {"0A-" TRACE "-" SPAN "-01", NULL},
	    {"00-" TRACE "0-" SPAN "-01", NULL},
	    {"00-" TRACE "-" SPAN "0-01", NULL},
	    {"0-" TRACE "-" SPAN "-01", NULL},
	    {"00_" TRACE "_" SPAN "_01", NULL},
	    {"00-" TRACE "-" SPAN "-0x", NULL},
	    {"", NULL},
	    {"-", NULL},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct traceparent read;
		char written[TRACEPARENT_SIZE];
		bool good = traceparent_read(cases[i].text, &read);
		if (good != (cases[i].written != NULL))
			fail_msg("%s is %s", cases[i].text, good ? "read" : "refused");
		if (!good)
			continue;
		traceparent_write(&read, written);
		assert_string_equal(written, cases[i].written);
	}
}

static void a_text_that_ends_early_is_none(void **state)
{
	(void)state;
	static const char whole[] = "00-" TRACE "-" SPAN "-01";
	struct traceparent read;
	assert_true(traceparent_read(whole, &read));
	for (size_t size = 0; size < sizeof whole - 1; size++) {
		char *part = strndup(whole, size); /* so that a look behind its end is seen */
		assert_false(traceparent_read(part, &read));
		free(part);
	}
	for (size_t i = 0; i < sizeof whole - 1; i++) {
		char changed[sizeof whole];
		memcpy(changed, whole, sizeof whole);
		changed[i] = 'g';
		assert_false(traceparent_read(changed, &read));
	}
}

static void a_new_span_stays_in_its_trace(void **state)
{
	(void)state;
	struct env_virtual env;
	struct traceparent first, second;
	char written[TRACEPARENT_SIZE];
	env_virtual_init(&env, 0, 7);
	assert_true(traceparent_read("00-" TRACE "-" SPAN "-01", &first));
	second = first;
	traceparent_descend(&second, &env.env);
	assert_string_equal(second.trace_id, TRACE);
	assert_int_equal(second.flags, 1);
	assert_string_not_equal(second.parent_id, SPAN);
	traceparent_write(&second, written);
	assert_true(traceparent_read(written, &first));
	assert_string_equal(first.parent_id, second.parent_id);
	traceparent_descend(&first, &env.env);
	assert_string_not_equal(first.parent_id, second.parent_id);
}

static int zeros; /* left to give */

static void give_zeros(struct env *env, void *ret, size_t size)
{
	(void)env;
	memset(ret, zeros-- > 0 ? 0 : 0xAB, size);
}

static void a_span_is_never_all_zero(void **state)
{
	(void)state;
	struct env env = {.random = give_zeros};
	struct traceparent parent;
	assert_true(traceparent_read("00-" TRACE "-" SPAN "-01", &parent));
	zeros = 3;
	traceparent_descend(&parent, &env);
	assert_string_equal(parent.parent_id, "abababababababab");
}

static void tracestate_is_printable_and_bounded(void **state)
{
	(void)state;
	char text[TRACESTATE_BYTES_MAX + 2];
	memset(text, 'a', sizeof text);
	text[TRACESTATE_BYTES_MAX + 1] = '\0';
	assert_false(tracestate_fits(text));
	text[TRACESTATE_BYTES_MAX] = '\0';
	assert_true(tracestate_fits(text));
	assert_true(tracestate_fits(""));
	assert_true(tracestate_fits("congo=t61rcWkgMzE, rojo=00f067aa0ba902b7~"));
	assert_false(tracestate_fits("a=\x7f"));
	assert_false(tracestate_fits("a=\n"));
	assert_false(tracestate_fits("a=\xC3\xA4"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_a_traceparent_and_what_is_none),
	    cmocka_unit_test(a_text_that_ends_early_is_none),
	    cmocka_unit_test(a_new_span_stays_in_its_trace),
	    cmocka_unit_test(a_span_is_never_all_zero),
	    cmocka_unit_test(tracestate_is_printable_and_bounded),
	};
	return cmocka_run_group_tests_name("traceparent", tests, NULL, NULL);
}
