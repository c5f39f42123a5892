/* SPDX-License-Identifier: Apache-2.0 */
/* outbox.h -- what a relay asks of a store: lanes, what is new in them, and what became of it.
 *
 * Aggregates hash to a fixed number of lanes, once, when their first event is written. A lane of a
 * destination is leased to one relay at a time, so within an aggregate there is one who sends (I5).
 * How far it got is a *cursor*, in the store's own words; an event that could not go stands in the
 * *hold*, and with it every later one of its aggregate, so that the cursor waits for nobody. What
 * arrived is kept as evidence. No event row is ever edited (I3).
 *
 * The cursor is kept about once a second, evidence at once: after a crash the next holder starts
 * behind, and skips what has evidence. */
#ifndef STORE_OUTBOX_H
#define STORE_OUTBOX_H

#include "base/failure.h"
#include "store/store.h"

enum { OUTBOX_LANES = 4 };

/* What a relay asks for. */
struct lane_wish {
	const char *destination;
	const char *relay; /* its name: unique among processes */
	int64_t lease_us;  /* by the store's clock */
};

/* A lane that it holds. Every write carries the token (I6). */
struct lane_lease {
	const char *destination;
	int lane;
	int64_t token;      /* greater than any before it for this lane */
	const char *cursor; /* where it stands: "": at the beginning */
};

/* An event on its way. */
struct outbox_event {
	struct event_row event;
	bool early;    /* the one before it in its aggregate comes later: hold it until then */
	int64_t after; /* early: the version of that one */
};

struct lane_batch {
	struct outbox_event *events; /* in an order in which each aggregate's are in version order */
	size_t count;                /* may be 0 where there is more: those had evidence */
	const char *cursor;          /* behind them */
	bool more;                   /* there may be more behind them already */
};

/* Evidence: an event arrived. */
struct delivery_row {
	const char *tenant;
	struct uuid event_id;
	const char *destination; /* out only: the lease's; likewise: */
	int64_t token;
	const char *place; /* topic, URL or file */
	int32_t partition; /* -1: none; likewise: */
	int64_t offset;
	int64_t at_us;
	bool was_held; /* in: it leaves the hold */
};

/* Why an event stands in the hold: X(symbol, name). */
#define HOLD_STATES(X)                                                                             \
	X(WAITS, "WAITS")       /* for one before it in its aggregate */                               \
	X(FAILED, "FAILED")     /* it is tried again at next_us */                                     \
	X(PARKED, "PARKED")     /* a person decides */                                                 \
	X(RELEASED, "RELEASED") /* a person said: try again now */                                     \
	X(SKIPPED, "SKIPPED")   /* a person said: its aggregate goes on without it */
enum hold_state {
#define HOLD_STATE_ENUM(symbol, name) HOLD_##symbol,
	HOLD_STATES(HOLD_STATE_ENUM)
#undef HOLD_STATE_ENUM
	    HOLD_STATE_COUNT
};
const char *hold_state_name(enum hold_state state); /* as the stores keep it */
bool hold_state_read(const char *name, enum hold_state *ret);

struct hold_row {
	const char *tenant;
	struct uuid event_id;
	const char *aggregate_type, *aggregate_id;
	int64_t version;
	enum hold_state state;
	int attempts; /* that failed */
	enum failure_class failure;
	const char *reason, *why; /* NULL: it waits; a stable code and a clause */
	int64_t next_us;          /* FAILED: not before; else 0 */
	int64_t since_us;         /* when it first stood here */
};

struct held_event {
	struct hold_row hold;
	struct event_row event;
	bool early; /* the one before it neither arrived nor is held; likewise: */
	int64_t after;
};

/* What became of a lane's events, and where the lane stands: one transaction. */
struct lane_settlement {
	const struct lane_lease *lease;
	const char *cursor; /* NULL: it is not kept now */
	int64_t lease_us;   /* from now; 0: as it is; -1: given up */
	const struct delivery_row *deliveries;
	size_t delivery_count;
	int64_t uncounted; /* deliveries of settlements before: counted, with these, when the cursor
	                      moves */
	const struct hold_row *holds; /* put, or put in the place of what is held of this event */
	size_t hold_count;
	const struct exception_row
	    *exceptions; /* opened; where one is open for its subject that stays */
	size_t exception_count;
};

/* How a lane stands, for people. */
struct lane_row {
	const char *destination;
	int lane;
	const char *relay; /* who holds it; NULL: nobody */
	int64_t token, lease_until_us, moved_us;
	int64_t delivered; /* events, since the lane was made */
};

#endif
