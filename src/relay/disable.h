/* SPDX-License-Identifier: Apache-2.0 */
/* disable.h -- a destination that refuses whatever it is sent is paused, for a person to look at.
 */
#ifndef RELAY_DISABLE_H
#define RELAY_DISABLE_H

#include "relay/relay.h"

/* Why: of the event that was refused. */
struct refusal {
	const struct event_row *event;
	const char *reason; /* a stable code */
	const char *why;    /* a clause */
	uint64_t knew;      /* the version of what was paused, when it was sent */
};

/* Pause the destination, durably, and open the exception that tells about it: once, however many
 * find out. What was to be sent stays as it is, and none of its attempts is used up. Nothing is
 * done where something was paused or resumed since it was sent: perhaps it was for this, and a
 * person has mended it. */
IBID_CHECK enum ibid_code relay_disable(struct relay *relay, const struct refusal *refusal,
                                        struct ibid_err *err);

#endif
