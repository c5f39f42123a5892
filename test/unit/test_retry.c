/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses between tries, and what follows a failure. */
#include "unit.h"

#include "retry/decide.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SECOND_US INT64_C(1000000)

enum { WALKS = 200000 };

static const struct retry_policy policy = {
    .attempts_max = 8, .base_us = SECOND_US, .cap_us = 300 * SECOND_US, .unknown = RETRY_REPEAT};

static uint64_t number(struct env_virtual *random)
{
	uint64_t value;
	env_random(&random->env, &value, sizeof value);
	return value;
}

/* Small and absurd ones alike. */
static int64_t any_us(struct env_virtual *random)
{
	return (int64_t)(number(random) >> (1 + pick(random, 63)));
}

static int any_attempt(struct env_virtual *random)
{
	return pick(random, 4) ? 1 + (int)pick(random, 12) : 1 + (int)pick(random, INT_MAX);
}

static struct retry_policy any_policy(struct env_virtual *random)
{
	int64_t base_us = any_us(random), more_us = any_us(random);
	return (struct retry_policy){
	    .attempts_max = 1 + (int)pick(random, 12),
	    .base_us = base_us,
	    .cap_us = more_us > INT64_MAX - base_us ? INT64_MAX : base_us + more_us,
	    .unknown = pick(random, 2) ? RETRY_REPEAT : RETRY_INQUIRE,
	};
}

static struct retry_case any_case(struct env_virtual *random, const struct retry_policy *any)
{
	struct retry_case failed = {
	    .policy = any,
	    .failure = (enum failure_class)pick(random, FAILURE_CLASS_COUNT),
	    .attempt = any_attempt(random),
	    .retry_after_us = pick(random, 2) ? any_us(random) : 0,
	    .random = number(random),
	    .breaker = (enum breaker_state)pick(random, BREAKER_STATE_COUNT),
	    .budget_wait_us = pick(random, 2) ? any_us(random) : 0,
	};
	failed.breaker_wait_us = failed.breaker != BREAKER_CLOSED ? any_us(random) : 0;
	return failed;
}

/* ---- Pauses --------------------------------------------------------------------------------- */

static void a_pause_is_drawn_from_all_of_a_range_that_doubles_up_to_the_cap(void **state) /* F02 */
{
	(void)state;
	static const int64_t seconds[] = {1, 2, 4, 8, 16, 32, 64};
	for (int attempt = 1; attempt <= (int)COUNT(seconds); attempt++) {
		int64_t most = seconds[attempt - 1] * SECOND_US;
		assert_int_equal(retry_pause_us(&policy, attempt, 0), 0);
		assert_int_equal(retry_pause_us(&policy, attempt, (uint64_t)most), most);
		assert_int_equal(retry_pause_us(&policy, attempt, (uint64_t)most + 1), 0);
	}
	assert_int_equal(retry_pause_us(&policy, 8, 0), -1);
	assert_int_equal(retry_pause_from_us(&policy, 9, 0, 256000000), 256000000);
	assert_int_equal(retry_pause_from_us(&policy, 10, 0, 300000000), 300000000);
	assert_int_equal(retry_pause_from_us(&policy, 10, 0, 300000001), 0);
}

static void those_who_failed_together_do_not_come_back_together(void **state) /* F02 */
{
	(void)state;
	enum { CALLERS = 10000, TENTHS = 10 };
	struct env_virtual random;
	int in_tenth[TENTHS] = {0};
	env_virtual_init(&random, 0, 11);
	for (int i = 0; i < CALLERS; i++) {
		int64_t pause = retry_pause_us(&policy, 3, number(&random));
		in_tenth[pause * TENTHS / (4 * SECOND_US + 1)]++;
	}
	for (int i = 0; i < TENTHS; i++)
		assert_in_range(in_tenth[i], CALLERS / TENTHS * 8 / 10, CALLERS / TENTHS * 12 / 10);
}

static void no_attempt_and_no_pause_is_too_absurd(void **state)
{
	(void)state;
	struct env_virtual random;
	env_virtual_init(&random, 0, 12);
	for (int i = 0; i < WALKS; i++) {
		struct retry_policy any = any_policy(&random);
		int attempt = any_attempt(&random);
		int64_t pause = retry_pause_us(&any, attempt, number(&random));
		assert_int_equal(pause < 0, attempt >= any.attempts_max);
		assert_true(pause <= any.cap_us && pause <= RETRY_PAUSE_MAX_US);
		pause = retry_pause_from_us(&any, attempt, any_us(&random) - 5, number(&random));
		assert_true(pause >= 0 && pause <= RETRY_PAUSE_MAX_US);
	}
	assert_int_equal(retry_pause_us(&(struct retry_policy){.attempts_max = 3}, 2, 77), 0);
	struct retry_policy endless = {
	    .attempts_max = INT_MAX, .base_us = INT64_MAX, .cap_us = INT64_MAX};
	assert_in_range(retry_pause_us(&endless, INT_MAX - 1, UINT64_MAX), 0, RETRY_PAUSE_MAX_US);
	assert_int_equal(retry_pause_from_us(&endless, 1, INT64_MAX, 3), RETRY_PAUSE_MAX_US);
}

/* ---- Decisions ------------------------------------------------------------------------------ */

static struct retry_decision decide(enum failure_class failure, int attempt)
{
	return retry_decide(&(struct retry_case){
	    .policy = &policy, .failure = failure, .attempt = attempt, .random = 500000});
}

static void each_class_has_its_course(void **state) /* F01 */
{
	(void)state;
	static const struct {
		enum retry_move early, last;
		const char *early_code, *last_code, *queue;
	} expected[FAILURE_CLASS_COUNT] = {
	    [FAILURE_TRANSIENT] = {RETRY_MOVE_AGAIN, RETRY_MOVE_PARK, "TRANSIENT_FAILURE",
	                           "ATTEMPTS_EXHAUSTED", "dead-letter"},
	    [FAILURE_CAPACITY] = {RETRY_MOVE_AGAIN, RETRY_MOVE_PARK, "CAPACITY_FAILURE",
	                          "CAPACITY_EXHAUSTED", "dead-letter"},
	    [FAILURE_PERMANENT] = {RETRY_MOVE_PARK, RETRY_MOVE_PARK, "PERMANENT_FAILURE",
	                           "PERMANENT_FAILURE", "dead-letter"},
	    [FAILURE_BUSINESS] = {RETRY_MOVE_PARK, RETRY_MOVE_PARK, "BUSINESS_REFUSAL",
	                          "BUSINESS_REFUSAL", "business"},
	    [FAILURE_SECURITY] = {RETRY_MOVE_PARK, RETRY_MOVE_PARK, "ACCESS_DENIED", "ACCESS_DENIED",
	                          "security"},
	    [FAILURE_DUPLICATE] = {RETRY_MOVE_DONE, RETRY_MOVE_DONE, "DONE_BEFORE", "DONE_BEFORE",
	                           NULL},
	    [FAILURE_CONFLICT] = {RETRY_MOVE_PARK, RETRY_MOVE_PARK, "CONFLICT", "CONFLICT",
	                          "dead-letter"},
	    [FAILURE_POISON] = {RETRY_MOVE_PARK, RETRY_MOVE_PARK, "POISON", "POISON", "dead-letter"},
	    [FAILURE_UNKNOWN] = {RETRY_MOVE_AGAIN, RETRY_MOVE_PARK, "OUTCOME_UNKNOWN",
	                         "OUTCOME_STILL_UNKNOWN", "dead-letter"},
	};
	for (unsigned i = 0; i < FAILURE_CLASS_COUNT; i++) {
		struct retry_decision early = decide((enum failure_class)i, 1);
		struct retry_decision last = decide((enum failure_class)i, policy.attempts_max);
		assert_string_equal(retry_move_name(early.move), retry_move_name(expected[i].early));
		assert_string_equal(retry_move_name(last.move), retry_move_name(expected[i].last));
		assert_string_equal(retry_reason_code(early.reason), expected[i].early_code);
		assert_string_equal(retry_reason_code(last.reason), expected[i].last_code);
		if (expected[i].queue)
			assert_string_equal(exception_queue_name(last.stop->queue), expected[i].queue);
		else
			assert_null(last.stop);
	}
}

static void what_may_have_been_done_is_not_repeated_before_it_was_asked_for(void **state) /* I4 */
{
	(void)state;
	struct env_virtual random;
	env_virtual_init(&random, 0, 13);
	for (int i = 0; i < WALKS; i++) {
		struct retry_policy any = any_policy(&random);
		struct retry_case failed = any_case(&random, &any);
		failed.failure = FAILURE_UNKNOWN;
		any.unknown = RETRY_INQUIRE;
		struct retry_decision decision = retry_decide(&failed);
		assert_int_equal(decision.move, RETRY_MOVE_INQUIRE);
		assert_int_equal(decision.attempts, failed.attempt);
	}
	assert_int_equal((struct retry_policy){0}.unknown, RETRY_INQUIRE);
}

static bool may_be_repeated(enum failure_class failure)
{
	return failure == FAILURE_TRANSIENT || failure == FAILURE_CAPACITY ||
	       failure == FAILURE_UNKNOWN;
}

/* Every class, in every state of the other side, has one answer with all that belongs to it. */
static void decisions_are_total_and_every_stop_can_be_acted_on(void **state) /* F01 F03 I8 */
{
	(void)state;
	struct env_virtual random;
	env_virtual_init(&random, 0, 14);
	for (int i = 0; i < WALKS; i++) {
		struct retry_policy any = any_policy(&random);
		struct retry_case failed = any_case(&random, &any);
		struct retry_decision decision = retry_decide(&failed);
		bool goes_on = decision.move == RETRY_MOVE_AGAIN || decision.move == RETRY_MOVE_WAIT ||
		               decision.move == RETRY_MOVE_INQUIRE;
		assert_true(goes_on || decision.move == RETRY_MOVE_PARK ||
		            decision.move == RETRY_MOVE_DONE);
		assert_true(!goes_on || may_be_repeated(failed.failure));
		assert_int_equal(decision.move == RETRY_MOVE_DONE, failed.failure == FAILURE_DUPLICATE);
		assert_true(goes_on || decision.pause_us == 0);
		assert_true(strlen(retry_reason_code(decision.reason)) > 0);
		assert_int_equal(decision.move == RETRY_MOVE_PARK, decision.stop != NULL);
		if (decision.stop) {
			assert_true(decision.stop->queue < EXCEPTION_QUEUE_COUNT);
			assert_true(decision.stop->severity < EXCEPTION_SEVERITY_COUNT);
			assert_true(strlen(decision.stop->actions) > 0);
			assert_true(strlen(decision.stop->suggestion) > 0);
			assert_true(!decision.stop->retryable || may_be_repeated(failed.failure));
		}
	}
}

static void pauses_stay_in_their_range_and_are_never_shorter_than_asked(void **state) /* F02 */
{
	(void)state;
	struct env_virtual random;
	env_virtual_init(&random, 0, 15);
	int alone = 0, asked = 0;
	for (int i = 0; i < WALKS; i++) {
		struct retry_policy any = any_policy(&random);
		struct retry_case failed = any_case(&random, &any);
		failed.retry_after_us %= RETRY_PAUSE_MAX_US;
		struct retry_decision decision = retry_decide(&failed);
		if (decision.move == RETRY_MOVE_PARK || decision.move == RETRY_MOVE_DONE)
			continue;
		assert_true(decision.pause_us >= failed.retry_after_us);
		assert_true(decision.pause_us <= RETRY_PAUSE_MAX_US);
		if (failed.retry_after_us) {
			asked++;
			continue;
		}
		if (failed.breaker != BREAKER_CLOSED || failed.budget_wait_us ||
		    failed.failure == FAILURE_CAPACITY)
			continue;
		alone++;
		assert_in_range(decision.pause_us, 0, any.cap_us);
	}
	assert_true(alone > 1000 && asked > 1000);
}

static void who_is_busy_gets_a_base_at_least_and_who_asks_gets_what_was_asked(void **state)
{
	(void)state;
	struct retry_case failed = {.policy = &policy, .failure = FAILURE_CAPACITY, .attempt = 1};
	assert_int_equal(retry_decide(&failed).pause_us, SECOND_US);
	failed.random = SECOND_US;
	assert_int_equal(retry_decide(&failed).pause_us, 2 * SECOND_US);
	failed.retry_after_us = 3600 * SECOND_US; /* beyond the cap, and spread over one base */
	assert_int_equal(retry_decide(&failed).pause_us, 3601 * SECOND_US);
	failed.random = SECOND_US + 1;
	assert_int_equal(retry_decide(&failed).pause_us, 3600 * SECOND_US);
}

static void an_open_breaker_never_uses_up_an_attempt(void **state) /* F02 */
{
	(void)state;
	struct env_virtual random;
	env_virtual_init(&random, 0, 16);
	int waits = 0;
	for (int i = 0; i < WALKS; i++) {
		struct retry_policy any = any_policy(&random);
		struct retry_case failed = any_case(&random, &any);
		any.unknown = RETRY_REPEAT;
		struct retry_decision decision = retry_decide(&failed);
		bool waits_now = may_be_repeated(failed.failure) && failed.breaker != BREAKER_CLOSED;
		assert_int_equal(decision.move == RETRY_MOVE_WAIT, waits_now);
		assert_int_equal(decision.attempts, failed.attempt - waits_now);
		if (waits_now && failed.breaker_wait_us <= RETRY_PAUSE_MAX_US)
			assert_true(decision.pause_us >= failed.breaker_wait_us);
		waits += waits_now;
	}
	assert_true(waits > 1000);
}

static void with_a_spent_budget_work_waits_longer_and_is_not_lost(void **state) /* F02 */
{
	(void)state;
	struct retry_case failed = {.policy = &policy,
	                            .failure = FAILURE_TRANSIENT,
	                            .attempt = 1,
	                            .random = 200 * SECOND_US,
	                            .budget_wait_us = 3 * SECOND_US};
	struct retry_decision decision = retry_decide(&failed);
	assert_int_equal(decision.move, RETRY_MOVE_AGAIN);
	assert_string_equal(retry_reason_code(decision.reason), "BUDGET_SPENT");
	assert_int_equal(decision.pause_us, 203 * SECOND_US);
	failed.budget_wait_us = 0;
	assert_true(retry_decide(&failed).pause_us <= SECOND_US);
}

/* One piece of work from its first try to its end, through whatever happens. */
static void no_work_is_tried_more_often_than_it_may(void **state) /* F02 */
{
	(void)state;
	struct env_virtual random;
	env_virtual_init(&random, 0, 17);
	for (int i = 0; i < WALKS / 20; i++) {
		struct retry_policy any = any_policy(&random);
		int counted = 0, used = 0;
		enum retry_move move = RETRY_MOVE_AGAIN;
		while (move == RETRY_MOVE_AGAIN || move == RETRY_MOVE_WAIT) {
			struct retry_case failed = any_case(&random, &any);
			any.unknown = RETRY_REPEAT;
			failed.attempt = used + 1;
			counted += failed.breaker == BREAKER_CLOSED || !may_be_repeated(failed.failure);
			struct retry_decision decision = retry_decide(&failed);
			move = decision.move;
			used = decision.attempts;
			assert_int_equal(used, counted);
			assert_true(used < any.attempts_max || move == RETRY_MOVE_PARK ||
			            move == RETRY_MOVE_DONE);
		}
		assert_true(counted <= any.attempts_max);
	}
}

static void the_longer_something_is_open_the_later_it_is_looked_at_up_to_the_cap(void **state)
{
	static const struct retry_policy growing = {.base_us = 1000000, .cap_us = 300000000};
	static const struct {
		int64_t age_s, pause_s;
	} known[] = {{INT64_MIN / 1000000, 1},
	             {-5, 1},
	             {0, 1},
	             {1, 2},
	             {2, 2},
	             {3, 4},
	             {7, 8},
	             {254, 128},
	             {255, 256},
	             {511, 300},
	             {86400, 300},
	             {INT64_MAX / 1000000, 300}};
	static const struct retry_policy none = {0};
	(void)state;
	for (size_t i = 0; i < COUNT(known); i++)
		assert_int_equal(retry_pause_at_age_us(&growing, known[i].age_s * 1000000),
		                 known[i].pause_s * 1000000);
	assert_int_equal(retry_pause_at_age_us(&none, 5), 0);
}

/* ---- Reasons -------------------------------------------------------------------------------- */

static void codes_are_one_of_a_kind_and_say_what_they_mean(void **state) /* F03 */
{
	(void)state;
	for (unsigned i = 0; i < RETRY_REASON_COUNT; i++) {
		const char *code = retry_reason_code((enum retry_reason)i);
		assert_true(strlen(retry_reason_meaning((enum retry_reason)i)) > 0);
		assert_int_equal(strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), strlen(code));
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(code, retry_reason_code((enum retry_reason)j));
	}
}

static void every_action_is_one_that_people_know(void **state) /* F03 */
{
	(void)state;
	static const char *const known[] = {"release", "skip", "cancel"};
	for (unsigned i = 0; i < RETRY_REASON_COUNT; i++) {
		const struct retry_stop *stop = retry_reason_stop((enum retry_reason)i);
		char actions[128] = "";
		if (stop)
			snprintf(actions, sizeof actions, "%s", stop->actions);
		char *rest = actions;
		for (char *action; *rest && (action = strsep(&rest, ","));) {
			bool found = false;
			for (size_t j = 0; j < COUNT(known); j++)
				found |= strcmp(action, known[j]) == 0;
			assert_true(found);
			if (!rest)
				break;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_pause_is_drawn_from_all_of_a_range_that_doubles_up_to_the_cap),
	    cmocka_unit_test(those_who_failed_together_do_not_come_back_together),
	    cmocka_unit_test(no_attempt_and_no_pause_is_too_absurd),
	    cmocka_unit_test(each_class_has_its_course),
	    cmocka_unit_test(what_may_have_been_done_is_not_repeated_before_it_was_asked_for),
	    cmocka_unit_test(decisions_are_total_and_every_stop_can_be_acted_on),
	    cmocka_unit_test(pauses_stay_in_their_range_and_are_never_shorter_than_asked),
	    cmocka_unit_test(who_is_busy_gets_a_base_at_least_and_who_asks_gets_what_was_asked),
	    cmocka_unit_test(an_open_breaker_never_uses_up_an_attempt),
	    cmocka_unit_test(with_a_spent_budget_work_waits_longer_and_is_not_lost),
	    cmocka_unit_test(no_work_is_tried_more_often_than_it_may),
	    cmocka_unit_test(the_longer_something_is_open_the_later_it_is_looked_at_up_to_the_cap),
	    cmocka_unit_test(codes_are_one_of_a_kind_and_say_what_they_mean),
	    cmocka_unit_test(every_action_is_one_that_people_know),
	};
	return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
