/* SPDX-License-Identifier: Apache-2.0 */
#include "retry/breaker.h"

#include <assert.h>

/* What a class of failure says about the other side. */
enum verdict { SAYS_NOTHING, SPEAKS_FOR, SPEAKS_AGAINST };
static const enum verdict verdicts[FAILURE_CLASS_COUNT] = {
    [FAILURE_TRANSIENT] = SPEAKS_AGAINST, [FAILURE_CAPACITY] = SPEAKS_AGAINST,
    [FAILURE_PERMANENT] = SAYS_NOTHING,   [FAILURE_BUSINESS] = SPEAKS_FOR,
    [FAILURE_SECURITY] = SAYS_NOTHING,    [FAILURE_DUPLICATE] = SPEAKS_FOR,
    [FAILURE_CONFLICT] = SPEAKS_FOR,      [FAILURE_POISON] = SAYS_NOTHING,
    [FAILURE_UNKNOWN] = SPEAKS_AGAINST,
};

enum happening {
	HAPPENED_GOOD,
	HAPPENED_BAD,
	HAPPENED_TOO_MUCH, /* one failure more than it may be in a row */
	HAPPENED_PROBE,
	HAPPENING_COUNT
};

/* Open: an answer now belongs to something sent earlier, so only a probe leads out of it; and a
 * late failure does not put the probe off. */
static const enum breaker_state after[BREAKER_STATE_COUNT][HAPPENING_COUNT] = {
    [BREAKER_CLOSED] = {[HAPPENED_GOOD] = BREAKER_CLOSED,
                        [HAPPENED_BAD] = BREAKER_CLOSED,
                        [HAPPENED_TOO_MUCH] = BREAKER_OPEN,
                        [HAPPENED_PROBE] = BREAKER_CLOSED},
    [BREAKER_OPEN] = {[HAPPENED_GOOD] = BREAKER_OPEN,
                      [HAPPENED_BAD] = BREAKER_OPEN,
                      [HAPPENED_TOO_MUCH] = BREAKER_OPEN,
                      [HAPPENED_PROBE] = BREAKER_HALF_OPEN},
    [BREAKER_HALF_OPEN] = {[HAPPENED_GOOD] = BREAKER_CLOSED,
                           [HAPPENED_BAD] = BREAKER_OPEN,
                           [HAPPENED_TOO_MUCH] = BREAKER_OPEN,
                           [HAPPENED_PROBE] = BREAKER_HALF_OPEN},
};

const char *breaker_state_name(enum breaker_state state)
{
	static const char *const names[BREAKER_STATE_COUNT] = {
	    [BREAKER_CLOSED] = "closed", [BREAKER_OPEN] = "open", [BREAKER_HALF_OPEN] = "half-open"};
	assert(state < BREAKER_STATE_COUNT);
	return names[state];
}

/* The one place where the state changes. */
static void move(struct breaker *breaker, const struct breaker_limit *limit,
                 enum happening happening, int64_t now_us)
{
	enum breaker_state before = breaker->state;
	breaker->state = after[before][happening];
	if (breaker->state == BREAKER_CLOSED)
		breaker->failures = happening == HAPPENED_BAD ? breaker->failures + 1 : 0;
	else if (breaker->state != before || happening == HAPPENED_PROBE)
		breaker->probe_us = now_us + limit->probe_every_us;
}

int64_t breaker_wait_us(const struct breaker *breaker, int64_t now_us)
{
	if (breaker->state == BREAKER_CLOSED || breaker->probe_us <= now_us)
		return 0;
	return breaker->probe_us - now_us;
}

void breaker_probe(struct breaker *breaker, const struct breaker_limit *limit, int64_t now_us)
{
	assert(breaker->state != BREAKER_CLOSED && breaker_wait_us(breaker, now_us) == 0);
	move(breaker, limit, HAPPENED_PROBE, now_us);
}

void breaker_hasten(struct breaker *breaker)
{
	breaker->probe_us = INT64_MIN;
}

void breaker_succeeded(struct breaker *breaker, const struct breaker_limit *limit, int64_t now_us)
{
	move(breaker, limit, HAPPENED_GOOD, now_us);
}

void breaker_failed(struct breaker *breaker, const struct breaker_limit *limit,
                    enum failure_class failure, int64_t now_us)
{
	assert(failure < FAILURE_CLASS_COUNT);
	if (!limit->open_after || verdicts[failure] == SAYS_NOTHING)
		return;
	if (verdicts[failure] == SPEAKS_FOR)
		move(breaker, limit, HAPPENED_GOOD, now_us);
	else if (breaker->failures + 1 < limit->open_after)
		move(breaker, limit, HAPPENED_BAD, now_us);
	else
		move(breaker, limit, HAPPENED_TOO_MUCH, now_us);
}
