/* SPDX-License-Identifier: Apache-2.0 */
/* outbox_look.h -- all there is to know about one event of the outbox. */
#ifndef OUTBOX_OUTBOX_LOOK_H
#define OUTBOX_OUTBOX_LOOK_H

#include "store/outbox.h"

struct outbox_file {
	struct event_row event;
	struct outbox_row *rows; /* how it stands toward each destination, by their names */
	struct uuid *exceptions; /* that are open for them, in their order; all zero: none */
	size_t row_count;
	struct pause_row *pauses; /* what is paused of everybody's and of the tenant's */
	size_t pause_count;
	struct delivery_row *deliveries; /* all of them, the oldest first */
	size_t delivery_count;
};

/* Does the pause keep it from going there? None does where it has arrived or was given up. */
bool outbox_is_kept(const struct outbox_row *row, const struct pause_row *pause);

/* IBID_NOT_FOUND when the tenant has no such event. */
IBID_CHECK enum ibid_code outbox_file_read(struct store *store, struct arena *arena,
                                           const char *tenant, const struct uuid *id,
                                           struct outbox_file *ret, struct ibid_err *err);

/* All that is paused. */
struct pauses_found {
	const struct pause_row *rows;
	size_t count;
};

/* An object: how an event stands toward a destination, and what keeps it from there. `exception`:
 * the open one about it; NULL, or all zero: none. */
void outbox_json(struct str *out, const struct outbox_row *row, struct pauses_found pauses,
                 const struct uuid *exception, enum row_view view);
void outbox_file_json(struct str *out, const struct outbox_file *file, enum row_view view);

#endif
