/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h -- how much may be sent to one destination or partner now: breaker, rate and budget.
 *
 * The gate asks the three in an order that wastes nothing: no probe is spent on work that the rate
 * holds back, no token on work that the budget holds back. Waiting at a gate is not an attempt.
 *
 * A value without a lock: callers that share one between threads lock it. */
#ifndef RETRY_GATE_H
#define RETRY_GATE_H

#include "retry/breaker.h"
#include "retry/bucket.h"
#include "retry/budget.h"
#include "retry/decide.h"

struct gate_limits { /* all zero: no limits */
	struct breaker_limit breaker;
	struct bucket_limit rate;
	struct budget_limit budget;
};

struct gate { /* all zero: nothing was sent yet */
	struct breaker breaker;
	struct bucket bucket;
	struct budget budget;
};

struct gate_pass {
	int64_t first, again;     /* how many may be sent; they are counted as sent */
	bool probe;               /* it is a single one, a probe whether the other side works again */
	int64_t wait_us;          /* nothing may be sent: ask again after this time; else 0 */
	enum retry_reason reason; /* why nothing may be sent */
};

/* How many of `first` first tries and `again` retries may be sent now? Retries are older, so they
 * take precedence over first tries. */
struct gate_pass gate_ask(struct gate *gate, const struct gate_limits *limits, int64_t now_us,
                          int64_t first, int64_t again);

/* Report a result, once for all records that were sent together and had the same result. A batch of
 * a hundred that lost its connection is one failure; a record in it that can't be written is
 * another. */
void gate_succeeded(struct gate *gate, const struct gate_limits *limits, int64_t now_us);
void gate_failed(struct gate *gate, const struct gate_limits *limits, int64_t now_us,
                 enum failure_class failure);

/* Fill in the gate's members for retry_decide: for each piece of work, after the report. */
void gate_inform(const struct gate *gate, const struct gate_limits *limits, int64_t now_us,
                 struct retry_case *failed);

#endif
