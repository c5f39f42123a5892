/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h -- what may go to one destination or partner now: breaker, rate and budget as one.
 *
 * The three are asked in an order in which none of them loses what another one refuses: no probe is
 * spent on what the rate holds back, no token on what the budget holds back. Nobody who waits at a
 * gate has made an attempt.
 *
 * A value without a lock: whoever shares one between threads locks it. */
#ifndef RETRY_GATE_H
#define RETRY_GATE_H

#include "retry/breaker.h"
#include "retry/bucket.h"
#include "retry/budget.h"
#include "retry/decide.h"

struct gate_limits { /* all zero: everything may go */
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
	int64_t first, again;     /* so many of the wanted may go, and are counted as sent */
	bool probe;               /* it is one, to find out whether the other side works */
	int64_t wait_us;          /* nothing may go: ask again after this; else 0 */
	enum retry_reason reason; /* why nothing may go */
};

/* Some of `first` first tries and `again` repetitions want to go. Repetitions, being older, are let
 * through before first tries. */
struct gate_pass gate_ask(struct gate *gate, const struct gate_limits *limits, int64_t now_us,
                          int64_t first, int64_t again);

/* How it ended: once for all that was sent together and ended alike. A batch of a hundred that met
 * one lost connection is one failure; a record in it that can't be written is another. */
void gate_succeeded(struct gate *gate, const struct gate_limits *limits, int64_t now_us);
void gate_failed(struct gate *gate, const struct gate_limits *limits, int64_t now_us,
                 enum failure_class failure);

/* Fill in what retry_decide has to know of the gate: for each piece of work, after the report. */
void gate_inform(const struct gate *gate, const struct gate_limits *limits, int64_t now_us,
                 struct retry_case *failed);

#endif
