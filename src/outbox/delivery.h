/* SPDX-License-Identifier: Apache-2.0 */
/* delivery.h -- what a person decides about an event that a destination did not take.
 *
 * An event that is parked has an exception, and the decision is that exception's action. One that
 * failed and is tried again by itself has none; it may be released, which only makes it go now. */
#ifndef OUTBOX_DELIVERY_H
#define OUTBOX_DELIVERY_H

#include "desk/action.h"

extern const struct action_subject delivery_subject;

/* Its id: "kafka-main/<event id>". */
const char *delivery_name(struct arena *arena, const char *destination, const struct uuid *event);

/* What was done or proposed about it: members, without braces. */
void delivery_done_json(struct str *out, const struct actor *actor, const struct uuid *event,
                        const char *destination, const struct action_result *result,
                        enum row_view view);

#endif
