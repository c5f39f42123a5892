/* SPDX-License-Identifier: Apache-2.0 */
/* breaker.h -- stop sending to a destination that fails every time, and notice when it works again.
 *
 *     closed --N failures in a row--> open --P later, one probe--> half-open --success--> closed
 *                                      ^-----------failure------------'
 *
 * A breaker belongs to one destination or partner, and counts only results that say something about
 * *it*: transient and capacity failures and unknown outcomes count as failures; an answer, even a
 * refusal by a rule of the business, counts as success; a record that can't be written, a wrong
 * setting or a missing permission count as neither. Records that were sent together and failed
 * alike are one report.
 *
 * While the breaker is not closed, work waits, and waiting is not an attempt. One probe is sent
 * every P, also if the result of the last one was never reported (its sender died). Callers should
 * choose another record for each probe, because one bad record may make the other side fail.
 *
 * A value without a lock: callers that share one between threads lock it. */
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

/* How long until something may be sent; 0: now: everything when closed, else one probe. */
int64_t breaker_wait_us(const struct breaker *breaker, int64_t now_us);

/* A probe is sent now. The breaker must not be closed, and its wait must be over. */
void breaker_probe(struct breaker *breaker, const struct breaker_limit *limit, int64_t now_us);

/* A person says that the other side works again: the next probe need not wait. */
void breaker_hasten(struct breaker *breaker);

/* Report the result of what was sent. */
void breaker_succeeded(struct breaker *breaker, const struct breaker_limit *limit, int64_t now_us);
void breaker_failed(struct breaker *breaker, const struct breaker_limit *limit,
                    enum failure_class failure, int64_t now_us);

#endif
