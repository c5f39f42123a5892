/* SPDX-License-Identifier: Apache-2.0 */
/* notice.h -- what a relay says in its log about events that stop: once for each change, with the
 * event's id and what a person can do. Counts are for metrics; these lines are for who asks why. */
#ifndef RELAY_NOTICE_H
#define RELAY_NOTICE_H

#include "base/log.h"
#include "retry/breaker.h"
#include "store/outbox.h"

/* Where it happened. */
struct notice {
	const struct log *log;
	const char *destination;
};

/* An event that waits for a person from now on. */
struct notice_parked {
	const struct event_row *event;
	const struct hold_row *hold; /* how often it failed, and why */
	struct uuid item;            /* the exception that tells about it */
};
void notice_parked(const struct notice *notice, const struct notice_parked *parked);

/* The relay has paused the destination, which refused this event and others. */
void notice_disabled(const struct notice *notice, const struct event_row *event, const char *reason,
                     const char *why);

/* The breaker has moved, or not: then nothing is said. */
struct notice_breaker {
	enum breaker_state before, after;
	const struct event_row *event; /* by which it was found out */
	const char *trouble;           /* the last failure that spoke against the destination */
	int64_t next_us;               /* not closed: when the next probe may go */
};
void notice_breaker(const struct notice *notice, const struct notice_breaker *moved);

/* What is paused of that which concerns the destination. Said of each pause that began or ended. */
void notice_pauses(const struct notice *notice, const struct pause_row *before, size_t before_count,
                   const struct pause_row *after, size_t after_count);

/* Are they one and the same pause? */
bool notice_same_pause(const struct pause_row *one, const struct pause_row *two);

#endif
