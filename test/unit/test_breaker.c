/* SPDX-License-Identifier: Apache-2.0 */
/* The circuit breaker, alone. */
#include "unit.h"

#include "retry/breaker.h"

#define SECOND_US INT64_C(1000000)

enum { STEPS = 300000 };

static const struct breaker_limit limit = {.open_after = 3, .probe_every_us = 30 * SECOND_US};

static bool against(enum failure_class failure)
{
	return failure == FAILURE_TRANSIENT || failure == FAILURE_CAPACITY ||
	       failure == FAILURE_UNKNOWN;
}

static void fails(struct breaker *breaker, int times, int64_t now_us)
{
	for (int i = 0; i < times; i++)
		breaker_failed(breaker, &limit, FAILURE_TRANSIENT, now_us);
}

static void it_opens_after_so_many_failures_in_a_row(void **state) /* F02 */
{
	(void)state;
	struct breaker breaker = {0};
	fails(&breaker, 2, 0);
	breaker_succeeded(&breaker, &limit, 0);
	fails(&breaker, 2, 0);
	assert_int_equal(breaker.state, BREAKER_CLOSED);
	assert_int_equal(breaker_wait_us(&breaker, 0), 0);
	fails(&breaker, 1, 7);
	assert_string_equal(breaker_state_name(breaker.state), "open");
	assert_int_equal(breaker_wait_us(&breaker, 7), 30 * SECOND_US);
	assert_int_equal(breaker_wait_us(&breaker, 7 + 30 * SECOND_US), 0);
}

static void only_what_says_something_about_the_other_side_counts(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FAILURE_CLASS_COUNT; i++) {
		struct breaker breaker = {0};
		for (int n = 0; n < 100; n++)
			breaker_failed(&breaker, &limit, (enum failure_class)i, 0);
		assert_int_equal(breaker.state == BREAKER_OPEN, against((enum failure_class)i));
	}
	/* A record that can't be written between two failures does not make them fewer, ... */
	struct breaker breaker = {0};
	fails(&breaker, 2, 0);
	breaker_failed(&breaker, &limit, FAILURE_POISON, 0);
	breaker_failed(&breaker, &limit, FAILURE_SECURITY, 0);
	fails(&breaker, 1, 0);
	assert_int_equal(breaker.state, BREAKER_OPEN);
	/* ... but who refuses has answered. */
	breaker = (struct breaker){0};
	fails(&breaker, 2, 0);
	breaker_failed(&breaker, &limit, FAILURE_BUSINESS, 0);
	fails(&breaker, 2, 0);
	assert_int_equal(breaker.state, BREAKER_CLOSED);
}

static void one_probe_goes_and_its_end_decides(void **state)
{
	(void)state;
	struct breaker breaker = {0};
	int64_t now_us = 0;
	fails(&breaker, 3, now_us);
	now_us += 30 * SECOND_US;
	breaker_probe(&breaker, &limit, now_us);
	assert_string_equal(breaker_state_name(breaker.state), "half-open");
	assert_int_equal(breaker_wait_us(&breaker, now_us), 30 * SECOND_US);

	now_us += SECOND_US;
	fails(&breaker, 1, now_us);
	assert_int_equal(breaker.state, BREAKER_OPEN);
	assert_int_equal(breaker_wait_us(&breaker, now_us), 30 * SECOND_US);

	now_us += 30 * SECOND_US;
	breaker_probe(&breaker, &limit, now_us);
	breaker_succeeded(&breaker, &limit, now_us);
	assert_string_equal(breaker_state_name(breaker.state), "closed");
	fails(&breaker, 2, now_us); /* counted from nothing */
	assert_int_equal(breaker.state, BREAKER_CLOSED);
}

static void late_answers_neither_close_it_nor_put_the_probe_off(void **state)
{
	(void)state;
	struct breaker breaker = {0};
	fails(&breaker, 3, 0);
	breaker_succeeded(&breaker, &limit, SECOND_US);
	assert_int_equal(breaker.state, BREAKER_OPEN);
	fails(&breaker, 50, 29 * SECOND_US);
	assert_int_equal(breaker_wait_us(&breaker, 30 * SECOND_US), 0);
}

static void a_probe_whose_end_nobody_tells_does_not_keep_the_next_from_going(void **state)
{
	(void)state;
	struct breaker breaker = {0};
	fails(&breaker, 3, 0);
	for (int64_t i = 1; i < 5; i++) {
		int64_t now_us = i * 30 * SECOND_US;
		assert_int_equal(breaker_wait_us(&breaker, now_us - 1), 1);
		assert_int_equal(breaker_wait_us(&breaker, now_us), 0);
		breaker_probe(&breaker, &limit, now_us);
	}
}

static void a_person_who_says_that_it_works_lets_a_probe_go_at_once(void **state)
{
	(void)state;
	struct breaker breaker = {0};
	fails(&breaker, 3, 0);
	breaker_hasten(&breaker);
	assert_int_equal(breaker.state, BREAKER_OPEN);
	assert_int_equal(breaker_wait_us(&breaker, SECOND_US), 0);
	breaker_probe(&breaker, &limit, SECOND_US);
	assert_int_equal(breaker_wait_us(&breaker, SECOND_US), 30 * SECOND_US); /* one, not more */
	fails(&breaker, 1, 2 * SECOND_US);
	assert_int_equal(breaker_wait_us(&breaker, 2 * SECOND_US), 30 * SECOND_US);
}

static void without_a_limit_it_never_opens(void **state)
{
	(void)state;
	struct breaker breaker = {0};
	struct breaker_limit none = {0};
	for (int i = 0; i < 1000; i++)
		breaker_failed(&breaker, &none, FAILURE_TRANSIENT, i);
	assert_int_equal(breaker.state, BREAKER_CLOSED);
}

/* Anything in any order: it is open exactly when it should be, probes are no closer than their
 * time, and the wait for one is never longer. */
static void whatever_happens_a_probe_goes_in_time_and_never_more_than_one(void **state)
{
	(void)state;
	struct env_virtual random;
	struct breaker breaker = {0};
	int64_t now_us = 0, last_probe_us = INT64_MIN / 2;
	int in_a_row = 0, probes = 0, closings = 0;
	env_virtual_init(&random, 0, 21);
	for (int i = 0; i < STEPS; i++) {
		enum breaker_state before = breaker.state;
		now_us += (int64_t)pick(&random, (size_t)(5 * SECOND_US));
		size_t what = pick(&random, 4);
		if (before != BREAKER_CLOSED && breaker_wait_us(&breaker, now_us) == 0) {
			assert_true(now_us - last_probe_us >= limit.probe_every_us);
			breaker_probe(&breaker, &limit, now_us);
			last_probe_us = now_us;
			probes++;
		} else if (what == 0) {
			breaker_succeeded(&breaker, &limit, now_us);
			in_a_row = 0;
			closings += before == BREAKER_HALF_OPEN;
			assert_true(before != BREAKER_HALF_OPEN || breaker.state == BREAKER_CLOSED);
		} else if (what < 3) {
			enum failure_class failure = (enum failure_class)pick(&random, FAILURE_CLASS_COUNT);
			bool speaks_for = failure == FAILURE_BUSINESS || failure == FAILURE_DUPLICATE ||
			                  failure == FAILURE_CONFLICT;
			breaker_failed(&breaker, &limit, failure, now_us);
			in_a_row = speaks_for ? 0 : in_a_row + against(failure);
			if (before == BREAKER_CLOSED && against(failure))
				assert_int_equal(breaker.state == BREAKER_OPEN, in_a_row >= limit.open_after);
			else if (!against(failure) && !speaks_for)
				assert_int_equal(breaker.state, before);
		}
		if (breaker.state == BREAKER_CLOSED && before != BREAKER_CLOSED)
			in_a_row = 0;
		assert_in_range(breaker_wait_us(&breaker, now_us), 0, limit.probe_every_us);
	}
	assert_true(probes > 1000 && closings > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(it_opens_after_so_many_failures_in_a_row),
	    cmocka_unit_test(only_what_says_something_about_the_other_side_counts),
	    cmocka_unit_test(one_probe_goes_and_its_end_decides),
	    cmocka_unit_test(late_answers_neither_close_it_nor_put_the_probe_off),
	    cmocka_unit_test(a_probe_whose_end_nobody_tells_does_not_keep_the_next_from_going),
	    cmocka_unit_test(a_person_who_says_that_it_works_lets_a_probe_go_at_once),
	    cmocka_unit_test(without_a_limit_it_never_opens),
	    cmocka_unit_test(whatever_happens_a_probe_goes_in_time_and_never_more_than_one),
	};
	return cmocka_run_group_tests_name("breaker", tests, NULL, NULL);
}
