/* SPDX-License-Identifier: Apache-2.0 */
/* decide.h -- what follows a failure: a pure function of its class and its circumstances (F01).
 *
 *     transient, capacity   again later, as long as attempts are left; then stop
 *     unknown               again under the same id where that is harmless, else inquire first (I4)
 *     duplicate             done: it was done before
 *     all others            stop: a retry would fail again
 *
 * While the other side's breaker is not closed, work *waits* instead of being tried again, and the
 * failed try is not counted: an outage says nothing about the work. */
#ifndef RETRY_DECIDE_H
#define RETRY_DECIDE_H

#include "base/failure.h"
#include "retry/breaker.h"
#include "retry/reason.h"
#include "retry/retry.h"

/* One failed try. gate_inform (retry/gate.h) fills in the gate's members after the failure was
 * reported to the gate; all zero without a gate. */
struct retry_case {
	const struct retry_policy *policy;
	enum failure_class failure;
	int attempt;            /* the number of the try that failed, from 1 */
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
	RETRY_MOVE_INQUIRE, /* after the pause ask the other side; do not try again before its answer */
	RETRY_MOVE_PARK,    /* stop, until a person decides */
	RETRY_MOVE_COUNT
};
const char *retry_move_name(enum retry_move move); /* "done", "again", ... */

struct retry_decision {
	enum retry_move move;
	enum retry_reason reason;      /* retry_reason_code is kept and shown */
	int64_t pause_us;              /* from now; 0 where nothing follows */
	int attempts;                  /* used up to now: to be kept with the work */
	const struct retry_stop *stop; /* RETRY_MOVE_PARK: the text for a person; else NULL */
};

struct retry_decision retry_decide(const struct retry_case *failed);

#endif
