/* SPDX-License-Identifier: Apache-2.0 */
/* decide.h -- what follows a failure: a pure function of its class and of what is known (F01).
 *
 *     transient, capacity   again later, as long as attempts are left; then it stops
 *     unknown               again under the same id where that is harmless, else inquire first (I4)
 *     duplicate             done: it was done before
 *     all others            stop: nothing gets better by itself
 *
 * While the other side's breaker is not closed, what would be tried again *waits* instead, and the
 * try that just failed is not counted: an outage says nothing about the work that met it. */
#ifndef RETRY_DECIDE_H
#define RETRY_DECIDE_H

#include "base/failure.h"
#include "retry/breaker.h"
#include "retry/reason.h"
#include "retry/retry.h"

/* One failed try. What the other side's gate says is from after the failure was reported to it:
 * gate_inform (retry/gate.h) fills it in; all zero where there is no gate. */
struct retry_case {
	const struct retry_policy *policy;
	enum failure_class failure;
	int attempt;            /* which one failed: from 1 */
	int64_t retry_after_us; /* a pause that the other side asked for; 0: it did not */
	uint64_t random;

	enum breaker_state breaker;
	int64_t breaker_wait_us;
	int64_t budget_wait_us; /* 0: retries are left */
};

enum retry_move {
	RETRY_MOVE_DONE,    /* nothing is left to do */
	RETRY_MOVE_AGAIN,   /* try again after the pause */
	RETRY_MOVE_WAIT,    /* the same, and the failed try does not count */
	RETRY_MOVE_INQUIRE, /* after the pause ask the other side; never try before it answered */
	RETRY_MOVE_PARK,    /* stop, until a person says otherwise */
	RETRY_MOVE_COUNT
};
const char *retry_move_name(enum retry_move move); /* "done", "again", ... */

struct retry_decision {
	enum retry_move move;
	enum retry_reason reason;      /* retry_reason_code is kept and shown */
	int64_t pause_us;              /* from now; 0 where nothing follows */
	int attempts;                  /* used up to now: to be kept with the work */
	const struct retry_stop *stop; /* RETRY_MOVE_PARK: what a person is told; else NULL */
};

struct retry_decision retry_decide(const struct retry_case *failed);

#endif
