/* SPDX-License-Identifier: Apache-2.0 */
/* breaker.h -- stop sending to who fails every time, and notice when it works again.
 *
 *     closed --N failures in a row--> open --P later, one probe--> half-open --success--> closed
 *                                      ^-----------failure------------'
 *
 * A breaker belongs to one destination or partner, and only what says something about *it* counts:
 * transient and capacity failures and unknown outcomes are against it; an answer, even a refusal by
 * a rule of the business, speaks for it; a record that can't be written, a wrong setting or a
 * missing permission say nothing. What was sent together and failed alike is one report.
 *
 * While it is not closed work waits, and waiting is no attempt. One probe goes every P; one whose
 * end nobody reports (its sender died) does not keep the next from going. A probe should be
 * somebody else's turn each time: a record that alone makes the other side fail must not keep all
 * others waiting.
 *
 * A value without a lock: whoever shares one between threads locks it. */
#ifndef RETRY_BREAKER_H
#define RETRY_BREAKER_H

#include "base/failure.h"

#include <stdbool.h>
#include <stdint.h>

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN, BREAKER_STATE_COUNT };
const char *breaker_state_name(enum breaker_state state); /* "closed", "open", "half-open" */

struct breaker_limit {
	int open_after;         /* failures in a row; 0: it never opens */
	int64_t probe_every_us; /* above 0 */
};

struct breaker { /* all zero: closed */
	enum breaker_state state;
	int failures;     /* in a row, while closed */
	int64_t probe_us; /* not closed: steady time at which the next probe may go */
};

/* How long until something may go: 0: now; all of it when closed, else one probe. */
int64_t breaker_wait_us(const struct breaker *breaker, int64_t now_us);

/* One probe goes now. The breaker is not closed, and the wait is over. */
void breaker_probe(struct breaker *breaker, const struct breaker_limit *limit, int64_t now_us);

/* A person says that the other side works again: the next probe need not wait. */
void breaker_hasten(struct breaker *breaker);

/* How what was sent ended. */
void breaker_succeeded(struct breaker *breaker, const struct breaker_limit *limit, int64_t now_us);
void breaker_failed(struct breaker *breaker, const struct breaker_limit *limit,
                    enum failure_class failure, int64_t now_us);

#endif
