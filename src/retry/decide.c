/* SPDX-License-Identifier: Apache-2.0 */
#include "retry/decide.h"

#include <assert.h>
#include <limits.h>

enum path { PATH_STOP, PATH_DONE, PATH_AGAIN, PATH_UNKNOWN };

static const struct course {
	enum path path;
	enum retry_reason going; /* while it goes on */
	enum retry_reason stop;  /* when it does not, or not any more */
} courses[FAILURE_CLASS_COUNT] = {
    [FAILURE_TRANSIENT] = {PATH_AGAIN, RETRY_TRANSIENT_FAILURE, RETRY_ATTEMPTS_EXHAUSTED},
    [FAILURE_CAPACITY] = {PATH_AGAIN, RETRY_CAPACITY_FAILURE, RETRY_CAPACITY_EXHAUSTED},
    [FAILURE_PERMANENT] = {.path = PATH_STOP, .stop = RETRY_PERMANENT_FAILURE},
    [FAILURE_BUSINESS] = {.path = PATH_STOP, .stop = RETRY_BUSINESS_REFUSAL},
    [FAILURE_SECURITY] = {.path = PATH_STOP, .stop = RETRY_ACCESS_DENIED},
    [FAILURE_DUPLICATE] = {.path = PATH_DONE, .going = RETRY_DONE_BEFORE},
    [FAILURE_CONFLICT] = {.path = PATH_STOP, .stop = RETRY_CONFLICT},
    [FAILURE_POISON] = {.path = PATH_STOP, .stop = RETRY_POISON},
    [FAILURE_UNKNOWN] = {PATH_UNKNOWN, RETRY_OUTCOME_UNKNOWN, RETRY_OUTCOME_STILL_UNKNOWN},
};

const char *retry_move_name(enum retry_move move)
{
	static const char *const names[RETRY_MOVE_COUNT] = {
	    [RETRY_MOVE_DONE] = "done",       [RETRY_MOVE_AGAIN] = "again", [RETRY_MOVE_WAIT] = "wait",
	    [RETRY_MOVE_INQUIRE] = "inquire", [RETRY_MOVE_PARK] = "park",
	};
	assert(move < RETRY_MOVE_COUNT);
	return names[move];
}

static int64_t longer(int64_t left_us, int64_t right_us)
{
	return left_us > right_us ? left_us : right_us;
}

/* Never earlier than the other side asked. A busy side that asked for no pause gets at least one
 * base: with full jitter alone many retries would come at once. */
static int64_t asked_us(const struct retry_case *failed)
{
	return failed->failure == FAILURE_CAPACITY
	           ? longer(failed->retry_after_us, failed->policy->base_us)
	           : failed->retry_after_us;
}

static struct retry_decision park(const struct retry_case *failed, enum retry_reason reason)
{
	const struct retry_stop *stop = retry_reason_stop(reason);
	assert(stop); /* I8 */
	return (struct retry_decision){
	    .move = RETRY_MOVE_PARK, .reason = reason, .attempts = failed->attempt, .stop = stop};
}

static struct retry_decision wait_for_breaker(const struct retry_case *failed)
{
	int64_t least_us = longer(asked_us(failed), failed->breaker_wait_us);
	return (struct retry_decision){
	    .move = RETRY_MOVE_WAIT,
	    .reason = RETRY_BREAKER_OPEN,
	    .pause_us = retry_pause_from_us(failed->policy, failed->attempt, least_us, failed->random),
	    .attempts = failed->attempt - 1,
	};
}

/* With a spent budget it comes back as late as it ever does. */
static struct retry_decision again(const struct retry_case *failed, enum retry_reason reason)
{
	bool spent = failed->budget_wait_us > 0;
	int64_t least_us = longer(asked_us(failed), failed->budget_wait_us);
	return (struct retry_decision){
	    .move = RETRY_MOVE_AGAIN,
	    .reason = spent ? RETRY_BUDGET_SPENT : reason,
	    .pause_us = retry_pause_from_us(failed->policy, spent ? INT_MAX : failed->attempt, least_us,
	                                    failed->random),
	    .attempts = failed->attempt,
	};
}

/* Attempts are no limit here: asking does no harm, and to stop without having asked would leave a
 * person with less than a machine could have found out. */
static struct retry_decision inquire(const struct retry_case *failed)
{
	int64_t least_us = longer(asked_us(failed), failed->breaker_wait_us);
	return (struct retry_decision){
	    .move = RETRY_MOVE_INQUIRE,
	    .reason = RETRY_OUTCOME_UNKNOWN,
	    .pause_us = retry_pause_from_us(failed->policy, failed->attempt, least_us, failed->random),
	    .attempts = failed->attempt,
	};
}

static struct retry_decision repeat(const struct retry_case *failed, const struct course *course)
{
	if (failed->breaker != BREAKER_CLOSED)
		return wait_for_breaker(failed);
	if (failed->attempt >= failed->policy->attempts_max)
		return park(failed, course->stop);
	return again(failed, course->going);
}

struct retry_decision retry_decide(const struct retry_case *failed)
{
	assert(failed->failure < FAILURE_CLASS_COUNT && failed->attempt >= 1);
	const struct course *course = &courses[failed->failure];
	switch (course->path) {
	case PATH_AGAIN: return repeat(failed, course);
	case PATH_UNKNOWN:
		return failed->policy->unknown == RETRY_REPEAT ? repeat(failed, course) : inquire(failed);
	case PATH_DONE:
		return (struct retry_decision){
		    .move = RETRY_MOVE_DONE, .reason = course->going, .attempts = failed->attempt};
	case PATH_STOP: break;
	}
	return park(failed, course->stop);
}
