/* SPDX-License-Identifier: Apache-2.0 */
/* The rate limit, alone. */
#include "unit.h"

#include "retry/bucket.h"

#include <stdlib.h>

#define SECOND_US INT64_C(1000000)

enum { STEPS = 3000 };

static void a_burst_goes_at_once_and_then_as_many_as_flow_in(void **state) /* F02 */
{
	(void)state;
	struct bucket_limit limit = {.count = 50, .per_us = SECOND_US, .burst = 10};
	struct bucket bucket = {0};
	int64_t now_us = 1000 * SECOND_US;
	assert_int_equal(bucket_ready(&bucket, &limit, now_us), 10);
	assert_int_equal(bucket_take(&bucket, &limit, now_us, 100), 10);
	assert_int_equal(bucket_take(&bucket, &limit, now_us, 100), 0);
	assert_int_equal(bucket_wait_us(&bucket, &limit, now_us), 20000);
	assert_int_equal(bucket_wait_us(&bucket, &limit, now_us + 19999), 1);
	assert_int_equal(bucket_take(&bucket, &limit, now_us + 19999, 1), 0);
	assert_int_equal(bucket_wait_us(&bucket, &limit, now_us + 20000), 0);
	assert_int_equal(bucket_take(&bucket, &limit, now_us + 20000, 7), 1);
	assert_int_equal(bucket_take(&bucket, &limit, now_us + 3600 * SECOND_US, 7), 7);
	assert_int_equal(bucket_ready(&bucket, &limit, now_us + 3600 * SECOND_US), 3);
}

static void without_a_burst_it_is_what_a_second_brings(void **state)
{
	(void)state;
	static const struct {
		struct bucket_limit limit;
		int64_t burst;
	} cases[] = {
	    {{.count = 50, .per_us = SECOND_US}, 50},
	    {{.count = 600, .per_us = 60 * SECOND_US}, 10},
	    {{.count = 1, .per_us = 3600 * SECOND_US}, 1},
	    {{.count = BUCKET_COUNT_MAX, .per_us = 1}, BUCKET_COUNT_MAX},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(bucket_ready(&(struct bucket){0}, &cases[i].limit, 0), cases[i].burst);
}

static void without_a_rate_everything_goes(void **state)
{
	(void)state;
	struct bucket bucket = {0};
	struct bucket_limit none = {0};
	assert_int_equal(bucket_take(&bucket, &none, 5, 1 << 30), 1 << 30);
	assert_true(bucket_ready(&bucket, &none, 5) == INT64_MAX);
	assert_int_equal(bucket_wait_us(&bucket, &none, 5), 0);
}

static void a_clock_that_was_read_earlier_brings_nothing_and_takes_nothing(void **state)
{
	(void)state;
	struct bucket_limit limit = {.count = 1, .per_us = SECOND_US, .burst = 2};
	struct bucket bucket = {0};
	assert_int_equal(bucket_take(&bucket, &limit, 10 * SECOND_US, 2), 2);
	assert_int_equal(bucket_take(&bucket, &limit, 4 * SECOND_US, 1), 0);
	assert_int_equal(bucket_wait_us(&bucket, &limit, 4 * SECOND_US), SECOND_US);
	assert_int_equal(bucket_take(&bucket, &limit, 11 * SECOND_US, 2), 1);
	assert_int_equal(bucket_ready(&bucket, &limit, INT64_MAX), 2);
}

struct taken {
	int64_t at_us, count;
};

/* All pairs: between any two moments, both included. */
static void assert_no_window_has_more(const struct taken *taken, size_t count,
                                      const struct bucket_limit *limit, int64_t burst)
{
	for (size_t i = 0; i < count; i++) {
		int64_t sum = 0;
		for (size_t j = i; j < count; j++) {
			int64_t length_us = taken[j].at_us - taken[i].at_us;
			sum += taken[j].count;
			if ((__int128)(sum - burst) * limit->per_us > (__int128)length_us * limit->count)
				fail_msg("%lld went in %lld us", (long long)sum, (long long)length_us);
		}
	}
}

static void in_no_stretch_of_time_goes_more_than_the_rate_and_the_burst(void **state) /* F02 */
{
	(void)state;
	static const int64_t units[] = {SECOND_US, 60 * SECOND_US, 3600 * SECOND_US, 7};
	struct taken *taken = calloc(STEPS, sizeof *taken);
	struct env_virtual random;
	env_virtual_init(&random, 0, 31);
	for (int walk = 0; walk < 12; walk++) {
		struct bucket_limit limit = {.count = 1 + (int64_t)pick(&random, 1000),
		                             .per_us = units[pick(&random, COUNT(units))],
		                             .burst = 1 + (int64_t)pick(&random, 50)};
		struct bucket bucket = {0};
		int64_t now_us = 0;
		for (int i = 0; i < STEPS; i++) {
			int64_t wanted = (int64_t)pick(&random, 20), wait_us;
			taken[i] = (struct taken){now_us, bucket_take(&bucket, &limit, now_us, wanted)};
			assert_in_range(taken[i].count, 0, wanted);
			/* Whoever waits as long as told gets one, and not a moment earlier. */
			wait_us = bucket_wait_us(&bucket, &limit, now_us);
			assert_int_equal(wait_us == 0, bucket_ready(&bucket, &limit, now_us) > 0);
			assert_true(bucket_ready(&bucket, &limit, now_us + wait_us) > 0);
			assert_true(!wait_us || bucket_ready(&bucket, &limit, now_us + wait_us - 1) == 0);
			now_us += pick(&random, 2) ? wait_us
			                           : (int64_t)pick(&random, (size_t)(limit.per_us / 20 + 2));
		}
		assert_no_window_has_more(taken, STEPS, &limit, limit.burst);
	}
	free(taken);
}

static void nothing_is_rounded_away_however_often_it_is_asked(void **state)
{
	(void)state;
	struct bucket_limit limit = {.count = 7, .per_us = 60 * SECOND_US, .burst = 1};
	struct bucket bucket = {0};
	int64_t sum = 0;
	for (int64_t now_us = 0; now_us <= 600 * SECOND_US; now_us += 997)
		sum += bucket_take(&bucket, &limit, now_us, 1);
	assert_in_range(sum, 70, 71);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_burst_goes_at_once_and_then_as_many_as_flow_in),
	    cmocka_unit_test(without_a_burst_it_is_what_a_second_brings),
	    cmocka_unit_test(without_a_rate_everything_goes),
	    cmocka_unit_test(a_clock_that_was_read_earlier_brings_nothing_and_takes_nothing),
	    cmocka_unit_test(in_no_stretch_of_time_goes_more_than_the_rate_and_the_burst),
	    cmocka_unit_test(nothing_is_rounded_away_however_often_it_is_asked),
	};
	return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
