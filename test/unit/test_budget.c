/* SPDX-License-Identifier: Apache-2.0 */
/* The retry budget, alone. */
#include "unit.h"

#include "retry/budget.h"

#include <stdlib.h>

#define SECOND_US INT64_C(1000000)

enum { STEPS = 20000 };

static const struct budget_limit limit = {
    .window_us = 10 * SECOND_US, .floor = 10, .share_percent = 20};

static void retries_are_a_share_of_first_tries_and_a_floor(void **state) /* F02 */
{
	(void)state;
	struct budget budget = {0};
	int64_t now_us = 77 * SECOND_US;
	assert_int_equal(budget_again(&budget, &limit, now_us, 100), 10);
	budget_first(&budget, &limit, now_us, 54);
	assert_int_equal(budget_again(&budget, &limit, now_us, 4), 4);
	assert_int_equal(budget_again(&budget, &limit, now_us, 100), 6);
	assert_int_equal(budget_again(&budget, &limit, now_us, 100), 0);
	assert_true(budget_wait_us(&budget, &limit, now_us) > 0);
	budget_first(&budget, &limit, now_us, 1);
	assert_int_equal(budget_wait_us(&budget, &limit, now_us), 0);
	assert_int_equal(budget_again(&budget, &limit, now_us, 100), 1);
	/* What went slides out of the window, on both sides. */
	assert_int_equal(budget_again(&budget, &limit, now_us + 12 * SECOND_US, 100), 10);
}

static void without_a_window_or_a_share_everything_may_be_repeated(void **state)
{
	(void)state;
	struct budget budget = {0};
	struct budget_limit none = {0}, off = limit;
	off.share_percent = BUDGET_UNLIMITED;
	budget_first(&budget, &none, 3, 1);
	assert_int_equal(budget_again(&budget, &none, 3, 1000), 1000);
	assert_int_equal(budget_wait_us(&budget, &none, 3), 0);
	assert_int_equal(budget_again(&budget, &off, 3, 1000), 1000);
	assert_int_equal(budget_wait_us(&budget, &off, 3), 0);
}

static void whoever_waits_as_long_as_told_may_go_and_it_is_not_for_ever(void **state)
{
	(void)state;
	struct env_virtual random;
	struct budget budget = {0};
	int64_t now_us = 0;
	int waits = 0;
	env_virtual_init(&random, 0, 41);
	for (int i = 0; i < STEPS; i++) {
		budget_again(&budget, &limit, now_us, (int64_t)pick(&random, 8));
		int64_t wait_us = budget_wait_us(&budget, &limit, now_us);
		assert_in_range(wait_us, 0, limit.window_us + limit.window_us / BUDGET_SLOTS);
		if (wait_us) {
			assert_int_equal(budget_again(&budget, &limit, now_us, 1), 0);
			now_us += wait_us;
			assert_true(budget_again(&budget, &limit, now_us, 1) == 1);
			waits++;
		}
		budget_first(&budget, &limit, now_us, (int64_t)pick(&random, 12));
		now_us += (int64_t)pick(&random, (size_t)(2 * SECOND_US));
	}
	assert_true(waits > 1000);
}

static void a_clock_that_was_read_earlier_counts_as_now(void **state)
{
	(void)state;
	struct budget budget = {0};
	assert_int_equal(budget_again(&budget, &limit, 100 * SECOND_US, 5), 5);
	assert_int_equal(budget_wait_us(&budget, &limit, 40 * SECOND_US), 0);
	assert_int_equal(budget_again(&budget, &limit, 100 * SECOND_US, 5), 5);
	assert_int_equal(budget_wait_us(&budget, &limit, 40 * SECOND_US), 71 * SECOND_US);
	assert_int_equal(budget_again(&budget, &limit, 40 * SECOND_US, 1), 0);
	assert_int_equal(budget_again(&budget, &limit, 105 * SECOND_US, 1), 0);
}

struct sent {
	int64_t at_us, first, again;
};

/* At every retry the window that ends with it, to the microsecond. */
static void assert_share_holds(const struct sent *sent, size_t count)
{
	size_t from = 0;
	int64_t first = 0, again = 0;
	for (size_t i = 0; i < count; i++) {
		first += sent[i].first;
		again += sent[i].again;
		for (; sent[from].at_us <= sent[i].at_us - limit.window_us; from++) {
			first -= sent[from].first;
			again -= sent[from].again;
		}
		if (sent[i].again && again * 100 > first * limit.share_percent + limit.floor * 100)
			fail_msg("%lld retries to %lld first tries", (long long)again, (long long)first);
	}
}

static void in_no_window_are_there_more_retries_than_the_share(void **state) /* F02 */
{
	(void)state;
	struct sent *sent = calloc(STEPS, sizeof *sent);
	struct env_virtual random;
	env_virtual_init(&random, 0, 42);
	for (int walk = 0; walk < 20; walk++) {
		struct budget budget = {0};
		int64_t now_us = (int64_t)pick(&random, (size_t)(1000 * SECOND_US)), total = 0;
		for (int i = 0; i < STEPS; i++) {
			/* Busy hours and quiet ones, so that first tries slide out under the retries. */
			size_t most = i / 500 % 2 ? 40 : 2;
			sent[i] = (struct sent){.at_us = now_us, .first = (int64_t)pick(&random, most)};
			budget_first(&budget, &limit, now_us, sent[i].first);
			sent[i].again = budget_again(&budget, &limit, now_us, (int64_t)pick(&random, 12));
			total += sent[i].again;
			now_us += (int64_t)pick(&random, (size_t)SECOND_US);
		}
		assert_true(total > STEPS / 20);
		assert_share_holds(sent, STEPS);
	}
	free(sent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(retries_are_a_share_of_first_tries_and_a_floor),
	    cmocka_unit_test(without_a_window_or_a_share_everything_may_be_repeated),
	    cmocka_unit_test(whoever_waits_as_long_as_told_may_go_and_it_is_not_for_ever),
	    cmocka_unit_test(a_clock_that_was_read_earlier_counts_as_now),
	    cmocka_unit_test(in_no_window_are_there_more_retries_than_the_share),
	};
	return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
