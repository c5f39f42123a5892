/* SPDX-License-Identifier: Apache-2.0 */
/* delivery.h -- the deliveries that items of human work are about: an event, at one destination. */
#ifndef OUTBOX_DELIVERY_H
#define OUTBOX_DELIVERY_H

#include "desk/exception.h"
#include "store/outbox.h"

/* "destination/event id" taken apart, and the event. */
struct delivery_subject {
	const char *destination;
	struct event_row event;
};

/* What a delivery is called as the subject of items and actions. */
const char *delivery_name(struct arena *arena, const char *destination, const struct uuid *event);

/* IBID_CONTRACT: the item is about no event that is there. */
IBID_CHECK enum ibid_code delivery_find(struct store *store, struct arena *arena,
                                        const struct exception_row *item,
                                        struct delivery_subject *ret, struct ibid_err *err);

/* In the deed's transaction, before the deed is written: what is PARKED gets the state `to`. What
 * is CANCELLED is so everywhere, and ends the items about it at other destinations, too. */
IBID_CHECK enum ibid_code delivery_decide(struct tx *tx, struct arena *arena,
                                          const struct delivery_subject *subject,
                                          enum hold_state to, const struct deed *deed,
                                          struct ibid_err *err);

/* What is paused and keeps the event from going to the destination. */
IBID_CHECK enum ibid_code delivery_pauses(struct store *store, struct arena *arena,
                                          const struct delivery_subject *subject,
                                          struct pause_row **ret, size_t *ret_count,
                                          struct ibid_err *err);

/* Destinations where the item's event arrived, joined by commas; NULL: none. */
IBID_CHECK enum ibid_code delivery_arrived(struct store *store, struct arena *arena,
                                           const struct exception_row *item, const char **ret,
                                           struct ibid_err *err);

#endif
