/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h -- people pause the relay, a destination or an event type, and let it go on.
 *
 * The relay and destinations are everybody's: that needs an admin. An event type is paused for the
 * tenant of whoever does it, and needs an operator. */
#ifndef OUTBOX_PAUSE_H
#define OUTBOX_PAUSE_H

#include "contract/contract.h"
#include "desk/actor.h"

/* What is asked for. */
struct pause_wish {
	enum pause_kind kind;
	const char *name;   /* of the destination or event type; NULL or "": the relay */
	const char *reason; /* required */
	bool resume;
	const struct actor *actor;
};

/* Why it was not done, where nothing is wrong but the asking. */
enum pause_refusal {
	PAUSE_REFUSED_NOT,   /* it was done, or an error says why not */
	PAUSE_REFUSED_INPUT, /* the reason or the name can't be that */
	PAUSE_REFUSED_ROLE,  /* the token has no role that may */
	PAUSE_REFUSED_NAME,  /* nobody knows a destination or an event type of that name */
	PAUSE_REFUSED_STATE, /* it is paused already; or it is not */
};

struct pausing {
	struct store *store;
	struct env *env;
	const struct contracts *contracts; /* what event types there are; NULL: any */
};

struct pause_done {
	enum pause_refusal refusal;
	struct pause_row row; /* as it is now; after resuming: as it was */
};

/* Do it, in one transaction with the evidence of it (I1). What is refused is IBID_REJECTED, with
 * the refusal in `ret`. An exception that tells about the pause ends with it. IBID_UNKNOWN: whether
 * it was done is not known; asking again is safe. */
IBID_CHECK enum ibid_code pause_act(const struct pausing *pausing, struct arena *arena,
                                    const struct pause_wish *wish, struct pause_done *ret,
                                    struct ibid_err *err);

/* An event that has yet to go somewhere. */
struct pausable {
	const char *destination, *tenant, *type;
};
/* Does the pause keep it from going there? */
bool pause_keeps(const struct pause_row *row, const struct pausable *event);

/* "the relay", "destination kafka-main", "event Paid". */
const char *pause_subject(struct arena *arena, enum pause_kind kind, const char *name);

#endif
