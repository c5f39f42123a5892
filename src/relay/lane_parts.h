/* SPDX-License-Identifier: Apache-2.0 */
/* lane_parts.h -- what the parts of a lane share: lane.c, which has its course and its rules (L1 to
 * L5), loads it (lane_load.c), sends what may go (lane_send.c) and settles what became of it
 * (lane_settle.c). */
#ifndef RELAY_LANE_PARTS_H
#define RELAY_LANE_PARTS_H

#include "relay/held.h"
#include "relay/lane.h"
#include "relay/notice.h"

enum {
	LANE_LOOK_US = 1000000,   /* the hold is looked at so often, while something is in it */
	LANE_TROUBLE_US = 250000, /* until the store is asked again */
};

/* One event on its way. */
struct sending {
	const struct event_row *event;
	const struct hold_row *hold; /* NULL: it is new */
	uint64_t aggregate;
	bool settled;
	bool waits; /* new, and behind what is held: not sent */
	bool early;
	bool elsewhere; /* early, and not for here: never sent */
	bool paused;    /* events of its type are */
};

struct relay_lane {
	struct relay *relay;
	struct arena names; /* of the lease */
	struct lane_lease lease;
	struct channel *channel;
	char *cursor;      /* behind all that is settled */
	char *kept;        /* the cursor, in the store */
	int64_t uncounted; /* deliveries since that moved */
	int64_t kept_us;   /* on the steady clock, like all of these: when cursor and lease were */
	_Atomic int64_t renewed_us; /* when the lease was, by whomever */
	atomic_bool halt;           /* whoever publishes returns soon */
	atomic_bool lost;           /* and nobody publishes any more */
	int denied;                 /* channels, in a row */
	struct paused paused;
	uint64_t knows; /* the version of that; with the relay's lock */
	int64_t quiet_until_us;
	bool eager;      /* once, what is held is tried again before its time */
	int64_t idle_us; /* the next pause of a quiet lane */
	int failures;    /* of the destination, in a row */
	bool sure;       /* the lane was ours when the channel was open already (L5) */
	bool doubtful;   /* what is read may have been sent by who held the lane before */
	bool refused;    /* who fenced it: the destination */

	/* The hold, as it was last looked at. */
	struct held_list held;
	int64_t held_us;
	int64_t looked_us; /* at what people withdraw */
	bool held_stale;

	/* What is on its way (L1). */
	struct arena arena;
	struct sending *sendings;
	size_t count, unsettled;
	size_t waiting;    /* of them, new ones that wait behind what is held */
	char *next_cursor; /* behind them; NULL: they are all of the hold */
	bool more;

	/* What is owed to the store (L3). */
	bool owes;
	struct delivery_row *deliveries;
	struct hold_row *holds;
	struct exception_row *exceptions;
	struct notice_parked *parked; /* one for each of these, to be said when it is kept */
	size_t delivery_count, hold_count, exception_count;
};

/* ---- lane.c --------------------------------------------------------------------------------- */

int64_t lane_steady(const struct relay_lane *lane);
uint64_t lane_random(const struct relay_lane *lane);
struct notice lane_notice(const struct relay_lane *lane);
void lane_tell(const struct relay_lane *lane, const char *event, const struct ibid_err *err);
void lane_close_channel(struct relay_lane *lane);

/* Keep what is owed; and the cursor, and the lease for so long, where that is not 0. */
IBID_CHECK enum ibid_code lane_keep(struct relay_lane *lane, int64_t lease_us,
                                    struct ibid_err *err);

/* ---- lane_load.c ---------------------------------------------------------------------------- */

/* Fill the lane with what may go: of the hold, and what is new. */
IBID_CHECK enum ibid_code lane_load(struct relay_lane *lane, struct ibid_err *err);

/* How it stands in the hold, or would. */
struct hold_row lane_hold_of(const struct relay_lane *lane, const struct sending *sending);

/* One that was cancelled before it was read: the store knows what a person decided about it. */
void lane_note_read(struct relay_lane *lane, const struct outbox_event *event);

/* ---- lane_settle.c -------------------------------------------------------------------------- */

void lane_settle(struct relay_lane *lane, struct sending *sending);
void lane_let_wait(struct relay_lane *lane, struct sending *sending);
void lane_arrive(struct relay_lane *lane, struct sending *sending, const struct record *record);

/* A record's own failure. Returns how long the lane should leave the destination alone. */
int64_t lane_fail(struct relay_lane *lane, struct sending *sending, const struct record *record);

/* What the destination as a whole did. */
struct heard {
	bool good;
	enum failure_class failure;    /* not good: how; likewise: */
	const char *reason, *why;      /* a stable code, or NULL; a clause */
	const struct event_row *event; /* to which it answered so, or did not */
};
void lane_report(struct relay_lane *lane, const struct heard *heard);

/* With the relay's lock: say whether the breaker has moved since, by this event. */
void lane_note_breaker(struct relay_lane *lane, enum breaker_state before,
                       const struct event_row *event);

/* ---- lane_send.c ---------------------------------------------------------------------------- */

/* How many of those that want to go may. 0: wait so long. */
size_t lane_ask_gate(struct relay_lane *lane, int64_t *ret_wait_us);

/* So many at most, and read what became of them. */
IBID_CHECK enum ibid_code lane_send(struct relay_lane *lane, size_t limit, struct ibid_err *err);

#endif
