/* SPDX-License-Identifier: Apache-2.0 */
/* outbox_act.h -- what a person decides about an event that a destination did not take.
 *
 * An event that is parked has an item of human work, and the decision is that item's action: who
 * may, what is allowed and who must agree is told by outbox/act.h. One that failed and is tried
 * again by itself has none; it may be released, which only makes it go now. */
#ifndef OUTBOX_OUTBOX_ACT_H
#define OUTBOX_OUTBOX_ACT_H

#include "outbox/act.h"
#include "store/outbox.h"

struct event_act {
	const struct actor *actor;
	struct uuid event_id;    /* in the actor's tenant */
	const char *destination; /* where it is held */
	const char *action;      /* "release", "skip", "cancel" */
	const char *reason;      /* required */
};

struct event_acted {
	enum act_refusal refusal;
	bool proposed;            /* it waits for a second person, who approves the item */
	const char *arrived;      /* cancelled: where it had arrived, joined by commas; NULL: nowhere */
	struct pause_row *pauses; /* released: what keeps it from going all the same */
	size_t pause_count;
	bool has_item; /* it has one, or had: */
	struct uuid item_id;
	bool is_held;
	struct hold_row hold; /* as it is now, at the destination */
};

/* Do it, or propose it, in one transaction with the evidence of it (I1). What is refused is
 * IBID_REJECTED, with the refusal in `ret`. IBID_NOT_FOUND: the tenant has no such event.
 * IBID_BUSY: nothing was done, try again. IBID_UNKNOWN: whether it was done is not known; asking
 * again is safe. */
IBID_CHECK enum ibid_code outbox_act(const struct acting *acting, struct arena *arena,
                                     const struct event_act *act, struct event_acted *ret,
                                     struct ibid_err *err);

#endif
