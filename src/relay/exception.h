/* SPDX-License-Identifier: Apache-2.0 */
/* exception.h -- the exceptions that a relay opens: for an event that is parked, and for a
 * destination that it has paused. Both are the work of the event's owner, as its contract says. */
#ifndef RELAY_EXCEPTION_H
#define RELAY_EXCEPTION_H

#include "relay/relay.h"

struct exception_row relay_parked_exception(struct relay *relay, struct arena *arena,
                                            const struct event_row *event,
                                            const struct hold_row *hold,
                                            const struct retry_stop *stop);

/* `event` was refused last, for this reason: a stable code and a clause. */
struct exception_row relay_paused_exception(struct relay *relay, struct arena *arena,
                                            const struct event_row *event, const char *reason,
                                            const char *why);

#endif
