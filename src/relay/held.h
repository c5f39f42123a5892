/* SPDX-License-Identifier: Apache-2.0 */
/* held.h -- what stands in the hold of a lane, as it was last read, found by event and aggregate.
 */
#ifndef RELAY_HELD_H
#define RELAY_HELD_H

#include "base/arena.h"
#include "store/outbox.h"

struct held_list {
	struct arena arena;
	struct held_event *events; /* by aggregate and version */
	size_t count;
	/* Open addressing: the position of an event, plus 1; 0: free. */
	uint32_t *by_event, *by_aggregate;
	size_t mask;
};

/* Read it, in the place of what it holds. */
IBID_CHECK enum ibid_code held_list_read(struct held_list *list, struct store *store,
                                         const struct lane_lease *lease, struct ibid_err *err);
void held_list_release(struct held_list *list);

/* How the event is held; NULL: it is not. */
const struct held_event *held_list_find(const struct held_list *list,
                                        const struct event_row *event);

/* Does something stand before new events of the aggregate with this number (relay/envelope.h)? */
bool held_list_blocks(const struct held_list *list, uint64_t aggregate);

uint64_t held_aggregate(const struct held_event *held);
/* It was read before its predecessor, which neither arrived nor stands before it yet. */
bool held_is_early(const struct held_event *held);
/* It was cancelled before the lane has read it. */
bool held_is_not_read(const struct held_event *held);
/* It was cancelled or goes elsewhere, and stands in nobody's way any more. */
bool held_is_over(const struct held_event *held);

#endif
