/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h -- people pause the relay, a destination or an event type, and let it go on.
 *
 * The relay and destinations are every tenant's: that needs an admin. An event type is paused for
 * the tenant of the token, and needs an operator. */
#ifndef OUTBOX_PAUSE_H
#define OUTBOX_PAUSE_H

#include "desk/action.h"

/* By their kinds. The subject's id is the name of the destination or event type; "": the relay. An
 * exception that tells about a pause ends with it. */
extern const struct action_subject pause_subjects[PAUSE_KIND_COUNT];

/* An event that has yet to go somewhere. */
struct pausable {
	const char *destination, *tenant, *type;
};
/* Does the pause keep it from going there? */
bool pause_keeps(const struct pause_row *row, const struct pausable *event);

/* "the relay", "destination kafka-main", "event Paid". */
const char *pause_text(struct arena *arena, enum pause_kind kind, const char *name);

#endif
