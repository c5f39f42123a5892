/* SPDX-License-Identifier: Apache-2.0 */
/* Breaker, rate and budget as one, and work that goes through them. */
#include "unit.h"

#include "retry/settings.h"

#define SECOND_US INT64_C(1000000)

static const struct gate_limits limits = {
    .breaker = {.open_after = 5, .probe_every_us = 30 * SECOND_US},
    .rate = {.count = 20, .per_us = SECOND_US, .burst = 20},
    .budget = {.window_us = 10 * SECOND_US, .floor = 3, .share_percent = 20},
};
static const struct retry_policy policy = {
    .attempts_max = 4, .base_us = SECOND_US, .cap_us = 60 * SECOND_US, .unknown = RETRY_REPEAT};

static uint64_t number(struct env_virtual *random)
{
	uint64_t value;
	env_random(&random->env, &value, sizeof value);
	return value;
}

static struct retry_decision fails(struct gate *gate, int64_t now_us, int attempt, uint64_t random)
{
	struct retry_case failed = {
	    .policy = &policy, .failure = FAILURE_TRANSIENT, .attempt = attempt, .random = random};
	gate_failed(gate, &limits, now_us, failed.failure);
	gate_inform(gate, &limits, now_us, &failed);
	return retry_decide(&failed);
}

static void without_limits_everything_goes(void **state)
{
	(void)state;
	struct gate gate = {0};
	struct gate_limits none = {0};
	struct gate_pass pass = gate_ask(&gate, &none, 5, 700, 300);
	assert_int_equal(pass.first, 700);
	assert_int_equal(pass.again, 300);
	assert_int_equal(pass.wait_us, 0);
	assert_false(pass.probe);
}

static void repetitions_go_first_as_far_as_the_budget_and_then_what_the_rate_leaves(void **state)
{
	(void)state;
	struct gate gate = {0};
	struct gate_pass pass = gate_ask(&gate, &limits, 0, 100, 100);
	assert_int_equal(pass.again, 3);
	assert_int_equal(pass.first, 17);
	pass = gate_ask(&gate, &limits, 0, 100, 100);
	assert_int_equal(pass.first + pass.again, 0);
	assert_string_equal(retry_reason_code(pass.reason), "RATE_LIMITED");
	assert_int_equal(pass.wait_us, 50000);
	assert_int_equal(gate_ask(&gate, &limits, 0, 0, 0).wait_us, 0); /* nobody waits */
}

static void what_the_budget_holds_back_costs_no_token(void **state)
{
	(void)state;
	struct gate gate = {0};
	assert_int_equal(gate_ask(&gate, &limits, 0, 0, 10).again, 3);
	for (int i = 0; i < 100; i++) {
		struct gate_pass pass = gate_ask(&gate, &limits, 0, 0, 10);
		assert_string_equal(retry_reason_code(pass.reason), "BUDGET_SPENT");
		assert_in_range(pass.wait_us, 1, 11 * SECOND_US);
	}
	assert_int_equal(gate_ask(&gate, &limits, 0, 100, 0).first, 17);
}

static void without_a_budget_the_rate_bounds_repetitions_too(void **state)
{
	(void)state;
	struct gate gate = {0};
	struct gate_limits rate_only = {.rate = limits.rate};
	assert_int_equal(gate_ask(&gate, &rate_only, 0, 0, 1000).again, 20);
}

static void a_batch_that_fails_as_one_counts_once_and_all_of_it_is_told(void **state)
{
	(void)state;
	struct gate gate = {0};
	for (int batch = 1; batch <= limits.breaker.open_after; batch++) {
		bool opens = batch == limits.breaker.open_after;
		gate_failed(&gate, &limits, 0, FAILURE_UNKNOWN);
		for (int i = 0; i < 100; i++) {
			struct retry_case failed = {
			    .policy = &policy, .failure = FAILURE_UNKNOWN, .attempt = 1};
			gate_inform(&gate, &limits, 0, &failed);
			assert_int_equal(retry_decide(&failed).move,
			                 opens ? RETRY_MOVE_WAIT : RETRY_MOVE_AGAIN);
			assert_int_equal(failed.breaker_wait_us, opens ? 30 * SECOND_US : 0);
		}
	}
}

static void a_failure_learns_that_the_budget_is_spent(void **state)
{
	(void)state;
	struct gate gate = {0};
	assert_int_equal(fails(&gate, 0, 1, 0).reason, RETRY_TRANSIENT_FAILURE);
	gate_ask(&gate, &limits, 0, 0, 3);
	struct retry_decision decision = fails(&gate, 0, 1, 0);
	assert_int_equal(decision.reason, RETRY_BUDGET_SPENT);
	assert_int_equal(decision.pause_us, 11 * SECOND_US);
}

static void a_probe_takes_a_token_and_counts_as_the_try_it_is(void **state)
{
	(void)state;
	struct gate_limits some = limits;
	some.budget.share_percent = 100;
	for (int again = 0; again < 2; again++) {
		struct gate gate = {.breaker = {.state = BREAKER_OPEN}};
		struct gate_pass pass = gate_ask(&gate, &some, 0, 50, again * 50);
		assert_true(pass.probe);
		assert_int_equal(pass.first, !again);
		assert_int_equal(pass.again, again);
		gate_succeeded(&gate, &some, 0);
		pass = gate_ask(&gate, &some, 0, 50, 50);
		assert_int_equal(pass.again, 3 + !again); /* the breaker's pace bounds probes already */
		assert_int_equal(pass.first + pass.again, 19);
	}
}

static void what_the_rate_holds_back_costs_no_probe(void **state)
{
	(void)state;
	struct gate gate = {0};
	int64_t now_us = 0;
	for (int i = 0; i < 5; i++)
		fails(&gate, now_us, 1, 0);
	now_us += 30 * SECOND_US;
	bucket_take(&gate.bucket, &limits.rate, now_us, 20);
	struct gate_pass pass = gate_ask(&gate, &limits, now_us, 0, 10);
	assert_string_equal(retry_reason_code(pass.reason), "RATE_LIMITED");
	now_us += pass.wait_us;
	pass = gate_ask(&gate, &limits, now_us, 0, 10);
	assert_true(pass.probe);
	assert_int_equal(pass.again, 1);
	assert_int_equal(gate_ask(&gate, &limits, now_us, 9, 9).first, 0);
	gate_succeeded(&gate, &limits, now_us);
	assert_int_equal(gate_ask(&gate, &limits, now_us + SECOND_US, 9, 0).first, 9);
}

/* An outage of a day: what waits has made at most the tries that opened the breaker. */
static void an_outage_parks_nothing_and_uses_up_no_attempts(void **state) /* F02 */
{
	(void)state;
	enum { WORK = 50 };
	struct gate gate = {0};
	struct env_virtual random;
	int attempts[WORK] = {0}, counted = 0, probes = 0;
	int64_t due_us[WORK] = {0}, now_us = 0;
	env_virtual_init(&random, 0, 51);
	while (now_us < 86400 * SECOND_US) {
		int next = 0;
		for (int i = 1; i < WORK; i++)
			if (due_us[i] < due_us[next])
				next = i;
		if (due_us[next] > now_us)
			now_us = due_us[next];
		struct gate_pass pass = gate_ask(&gate, &limits, now_us, !attempts[next],
		                                 attempts[next] > 0);
		if (pass.wait_us) {
			now_us += pass.wait_us;
			continue;
		}
		probes += pass.probe;
		struct retry_decision decision = fails(&gate, now_us, attempts[next] + 1, number(&random));
		assert_int_not_equal(decision.move, RETRY_MOVE_PARK);
		counted += decision.attempts - attempts[next];
		attempts[next] = decision.attempts;
		due_us[next] = now_us + decision.pause_us;
	}
	assert_int_equal(counted, limits.breaker.open_after - 1);
	assert_in_range(probes, 86400 / 30 / 4, 86400 / 30);
}

/* One piece of work and nobody else to open the breaker: it must open before the attempts end. */
static void by_default_an_outage_does_not_park_even_what_meets_it_alone(void **state)
{
	(void)state;
	struct retry_settings settings;
	struct gate gate = {0};
	struct env_virtual random;
	int64_t now_us = 0;
	int attempts = 0;
	retry_settings_init(&settings);
	settings.policy.unknown = RETRY_REPEAT;
	env_virtual_init(&random, 0, 53);
	for (int i = 0; i < 10000; i++) {
		struct gate_pass pass = gate_ask(&gate, &settings.limits, now_us, i == 0, i > 0);
		now_us += pass.wait_us;
		if (pass.wait_us)
			continue;
		struct retry_case failed = {.policy = &settings.policy,
		                            .failure = pick(&random, 2) ? FAILURE_TRANSIENT
		                                                        : FAILURE_UNKNOWN,
		                            .attempt = attempts + 1,
		                            .random = number(&random)};
		gate_failed(&gate, &settings.limits, now_us, failed.failure);
		gate_inform(&gate, &settings.limits, now_us, &failed);
		struct retry_decision decision = retry_decide(&failed);
		assert_int_not_equal(decision.move, RETRY_MOVE_PARK);
		attempts = decision.attempts;
		now_us += decision.pause_us;
	}
	assert_int_equal(attempts, settings.limits.breaker.open_after - 1);
}

/* The other side fails now and then and is down for hours; in the end all work is done, or stopped
 * after as many tries as allowed. */
static void all_work_comes_to_an_end(void **state) /* F02 I8 */
{
	(void)state;
	enum { WORK = 400 };
	struct gate gate = {0};
	struct env_virtual random;
	struct {
		int attempts, counted;
		int64_t due_us;
		bool ended, tried;
	} work[WORK] = {0};
	int64_t now_us = 0, waited = 0;
	int left = WORK, parked = 0;
	env_virtual_init(&random, 0, 52);
	for (int turn = 0; left; turn++) {
		assert_true(turn < 1000000);
		int next = -1;
		for (int i = 0; i < WORK; i++)
			if (!work[i].ended && (next < 0 || work[i].due_us < work[next].due_us))
				next = i;
		if (work[next].due_us > now_us)
			now_us = work[next].due_us;
		struct gate_pass pass = gate_ask(&gate, &limits, now_us, !work[next].tried,
		                                 work[next].tried);
		assert_int_equal(pass.first + pass.again, pass.wait_us ? 0 : 1);
		if (pass.wait_us) {
			work[next].due_us = now_us + pass.wait_us;
			waited++;
			continue;
		}
		work[next].tried = true;
		bool down = now_us / (600 * SECOND_US) % 2;
		if (!down && pick(&random, 100) < 60) {
			gate_succeeded(&gate, &limits, now_us);
			work[next].ended = true;
			left--;
			continue;
		}
		struct retry_decision decision = fails(&gate, now_us, work[next].attempts + 1,
		                                       number(&random));
		work[next].counted += gate.breaker.state == BREAKER_CLOSED;
		work[next].attempts = decision.attempts;
		work[next].due_us = now_us + decision.pause_us;
		assert_int_equal(work[next].attempts, work[next].counted);
		assert_true(work[next].counted <= policy.attempts_max);
		if (decision.move == RETRY_MOVE_PARK) {
			assert_int_equal(work[next].counted, policy.attempts_max);
			assert_true(decision.stop->retryable);
			work[next].ended = true;
			left--;
			parked++;
		}
	}
	assert_true(waited > 100);
	assert_in_range(parked, 1, WORK / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(without_limits_everything_goes),
	    cmocka_unit_test(repetitions_go_first_as_far_as_the_budget_and_then_what_the_rate_leaves),
	    cmocka_unit_test(what_the_budget_holds_back_costs_no_token),
	    cmocka_unit_test(without_a_budget_the_rate_bounds_repetitions_too),
	    cmocka_unit_test(a_batch_that_fails_as_one_counts_once_and_all_of_it_is_told),
	    cmocka_unit_test(a_failure_learns_that_the_budget_is_spent),
	    cmocka_unit_test(a_probe_takes_a_token_and_counts_as_the_try_it_is),
	    cmocka_unit_test(what_the_rate_holds_back_costs_no_probe),
	    cmocka_unit_test(an_outage_parks_nothing_and_uses_up_no_attempts),
	    cmocka_unit_test(by_default_an_outage_does_not_park_even_what_meets_it_alone),
	    cmocka_unit_test(all_work_comes_to_an_end),
	};
	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
