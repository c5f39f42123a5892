/* SPDX-License-Identifier: Apache-2.0 */
#include "retry/gate.h"

#include <assert.h>

static int64_t fewer(int64_t left, int64_t right)
{
	return left < right ? left : right;
}

static struct gate_pass hold(int64_t wait_us, enum retry_reason reason)
{
	return (struct gate_pass){.wait_us = wait_us, .reason = reason};
}

/* The breaker itself limits probes. They are not charged to the budget: a spent budget would hold
 * them back, and the recovery of the other side would go unnoticed. */
static struct gate_pass probe(struct gate *gate, const struct gate_limits *limits, int64_t now_us,
                              bool again)
{
	breaker_probe(&gate->breaker, &limits->breaker, now_us);
	bucket_take(&gate->bucket, &limits->rate, now_us, 1);
	if (!again)
		budget_first(&gate->budget, &limits->budget, now_us, 1);
	return (struct gate_pass){.first = !again, .again = again, .probe = true};
}

static struct gate_pass let_through(struct gate *gate, const struct gate_limits *limits,
                                    int64_t now_us, int64_t first, int64_t again)
{
	int64_t room = bucket_ready(&gate->bucket, &limits->rate, now_us);
	struct gate_pass pass = {0};
	pass.again = budget_again(&gate->budget, &limits->budget, now_us, fewer(again, room));
	pass.first = fewer(first, room - pass.again);
	if (pass.first + pass.again == 0)
		return hold(budget_wait_us(&gate->budget, &limits->budget, now_us), RETRY_BUDGET_SPENT);
	budget_first(&gate->budget, &limits->budget, now_us, pass.first);
	bucket_take(&gate->bucket, &limits->rate, now_us, pass.first + pass.again);
	return pass;
}

struct gate_pass gate_ask(struct gate *gate, const struct gate_limits *limits, int64_t now_us,
                          int64_t first, int64_t again)
{
	assert(first >= 0 && again >= 0);
	int64_t wait_us = breaker_wait_us(&gate->breaker, now_us);
	if (first + again == 0)
		return (struct gate_pass){0};
	if (wait_us)
		return hold(wait_us, RETRY_BREAKER_OPEN);
	wait_us = bucket_wait_us(&gate->bucket, &limits->rate, now_us);
	if (wait_us)
		return hold(wait_us, RETRY_RATE_LIMITED);
	if (gate->breaker.state != BREAKER_CLOSED)
		return probe(gate, limits, now_us, again > 0);
	return let_through(gate, limits, now_us, first, again);
}

void gate_succeeded(struct gate *gate, const struct gate_limits *limits, int64_t now_us)
{
	breaker_succeeded(&gate->breaker, &limits->breaker, now_us);
}

void gate_failed(struct gate *gate, const struct gate_limits *limits, int64_t now_us,
                 enum failure_class failure)
{
	breaker_failed(&gate->breaker, &limits->breaker, failure, now_us);
}

void gate_inform(const struct gate *gate, const struct gate_limits *limits, int64_t now_us,
                 struct retry_case *failed)
{
	failed->breaker = gate->breaker.state;
	failed->breaker_wait_us = breaker_wait_us(&gate->breaker, now_us);
	failed->budget_wait_us = budget_wait_us(&gate->budget, &limits->budget, now_us);
}
