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

enum { OUTBOX_LANES = 2 };

/* What a relay asks for. */
struct lane_wish {
	const char *destination;
	const char *relay; /* its name: unique among processes */
	int64_t lease_us;  /* by the store's clock; 0: it is gone, and leases nothing */
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
	bool withdrawn; /* list_held names some that may be among them, or are yet to come */
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

/* The value of a member of an event's headers, which is a text without escapes, as contracts make
 * them; it ends after `*ret_size` bytes. NULL: there is none. */
const char *event_header(const struct event_row *event, const char *name, size_t *ret_size);

/* Is it to go there? Said by its contract when it was written. */
bool event_is_for(const struct event_row *event, const char *destination);

/* Why an event stands in the hold: X(symbol, name). */
#define HOLD_STATES(X)                                                                             \
	X(WAITS, "WAITS")         /* for one before it in its aggregate */                             \
	X(FAILED, "FAILED")       /* it is tried again at next_us */                                   \
	X(PARKED, "PARKED")       /* a person decides */                                               \
	X(RELEASED, "RELEASED")   /* a person said: try again now */                                   \
	X(SKIPPED, "SKIPPED")     /* a person said: its aggregate goes on without it */                \
	X(CANCELLED, "CANCELLED") /* a person withdrew it, here and wherever it had not arrived */     \
	X(ELSEWHERE, "ELSEWHERE") /* it is not for here, and came early: what is behind it waits */
enum hold_state {
#define HOLD_STATE_ENUM(symbol, name) HOLD_##symbol,
	HOLD_STATES(HOLD_STATE_ENUM)
#undef HOLD_STATE_ENUM
	    HOLD_STATE_COUNT
};
const char *hold_state_name(enum hold_state state); /* as the stores keep it */
bool hold_state_read(const char *name, enum hold_state *ret);
extern struct words hold_state_words;

/* Reasons of a hold that is nobody's failure. */
#define HOLD_EARLY    "PREDECESSOR_COMES" /* it was read before the one that it comes behind */
#define HOLD_NOT_READ "NOT_READ"          /* CANCELLED before its lane read it */
#define HOLD_PAUSED   "EVENT_TYPE_PAUSED" /* events of its type are paused */

/* SKIPPED and CANCELLED rows stay for good, as evidence. One that is *passed* is in nobody's way. A
 * CANCELLED one may not be passed yet: until the lane has read it, and until the one before it was
 * read, it stands like one that waits, so that no later event of its aggregate goes too early. So
 * does one that goes ELSEWHERE: one that is passed leaves the hold, and nobody has decided it. */
struct hold_row {
	const char *destination; /* out only, of list_holds; elsewhere the lease's */
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
	bool passed;
	bool held;           /* in: it was read as: */
	enum hold_state was; /* a settlement leaves it alone if a person has changed that since */
};

/* What a person decides about an event at one destination. */
struct hold_decision {
	const char *tenant, *destination;
	struct uuid event_id;
	enum hold_state from, to; /* PARKED or FAILED; RELEASED or SKIPPED */
};

/* A person withdraws an event. */
struct withdrawal {
	const char *tenant;
	struct uuid event_id;
	int64_t at_us;
};

struct held_event {
	struct hold_row hold;
	struct event_row event;
	bool early; /* the one before it neither arrived nor is held; likewise: */
	int64_t after;
	bool arrived; /* CANCELLED: it was on its way then */
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
	const struct hold_row *holds; /* put, or put in the place of what was read of this event */
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

/* ---- Looking -------------------------------------------------------------------------------- */

/* How an event stands toward a destination, as the view ibid.outbox_status says: X(symbol, name).
 */
#define OUTBOX_STATES(X)                                                                           \
	X(PENDING, "PENDING")     /* it has yet to go, or waits for one before it */                   \
	X(CLAIMED, "CLAIMED")     /* a relay holds its lane now */                                     \
	X(PUBLISHED, "PUBLISHED") /* it arrived: there is evidence */                                  \
	X(FAILED, "FAILED")       /* it is tried again at next_us */                                   \
	X(PARKED, "PARKED")       /* a person decides */                                               \
	X(SKIPPED, "SKIPPED")     /* a person decided; likewise: */                                    \
	X(CANCELLED, "CANCELLED")
enum outbox_state {
#define OUTBOX_STATE_ENUM(symbol, name) OUTBOX_##symbol,
	OUTBOX_STATES(OUTBOX_STATE_ENUM)
#undef OUTBOX_STATE_ENUM
	    OUTBOX_STATE_COUNT
};
const char *outbox_state_name(enum outbox_state state);
bool outbox_state_read(const char *name, enum outbox_state *ret); /* in any case of letters */

/* One event toward one destination. */
struct outbox_row {
	const char *tenant;
	struct uuid event_id;
	const char *event_key, *type, *aggregate_type, *aggregate_id;
	int64_t version;
	const char *topic, *destination;
	enum outbox_state state;
	int attempts;         /* that failed, of what is held; likewise: */
	const char *failure;  /* the name of its class; NULL: none; likewise: */
	const char *reason;   /* a stable code */
	const char *why;      /* a clause */
	int64_t waits_for;    /* the version of its aggregate that it stands behind; 0: none */
	int64_t next_us;      /* FAILED: not before; else 0 */
	int64_t since_us;     /* when it first was held; 0: it is not */
	const char *relay;    /* CLAIMED: by whom; else NULL */
	const char *place;    /* PUBLISHED: of the first delivery; else NULL */
	int32_t partition;    /* -1: none; likewise: */
	int64_t offset;       /* -1: none */
	int64_t published_us; /* 0: not */
	int64_t created_us;
};

struct outbox_filter {
	const char *tenant;          /* NULL: all; likewise: */
	const struct uuid *event_id; /* with its tenant: one event toward each of its destinations */
	const char *destination, *type, *aggregate_type, *aggregate_id;
	int state;                     /* enum outbox_state; -1: all */
	const struct uuid *after;      /* keyset page: behind this event; NULL: from the newest */
	const char *after_destination; /* of that event, those behind this one, too; NULL: none */
	size_t limit;
};

/* Where a page ends, in one word: "<event id>/<destination>"; the destination may be missing. */
const char *outbox_place_text(struct arena *arena, const struct outbox_row *row);
bool outbox_place_read(const char *text, struct uuid *ret, const char **ret_destination);

/* So many events behind the cursor of a lane are looked at one by one to tell what waits: more than
 * a batch that relays send unless they are told otherwise. */
enum { BACKLOG_NEAR = 2500 };

/* How the outbox stands toward a destination. */
struct backlog_row {
	const char *destination;
	int64_t written; /* events that name it; counted anew after a restore, without what is gone */
	int64_t
	    delivered;   /* since its lanes were made; where a relay was killed up to a second's less */
	int64_t backlog; /* neither arrived nor skipped; held ones are among them */
	int64_t held;    /* that failed, and those behind them */
	int64_t failed, parked; /* of those */
	int64_t oldest_us;      /* the age of the oldest that waits; 0: none does */
	int64_t leased;         /* lanes that a relay holds at this moment */
	int64_t moved_us;       /* when the last lane moved; 0: never */
};

/* Bring the counters up to date, in `pieces` pieces at most: with less it is only more to count for
 * whoever comes next. Nobody waits long for a piece. */
IBID_CHECK enum ibid_code outbox_count(struct store *store, size_t pieces, struct ibid_err *err);

extern const struct row_shape lane_shape, delivery_shape, hold_shape;
extern const struct row_shape outbox_shape, outbox_filter_shape, backlog_shape;

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* Change what is held as a person decided. Before the verbs on its item, whose rows a
 * settlement locks in this order, too. IBID_RETRY, from here or from commit: it is not held in
 * that state any more. */
IBID_CHECK enum ibid_code store_decide_hold(struct tx *, const struct hold_decision *,
                                            struct ibid_err *);

/* Withdraw an event: CANCELLED at each destination that its contract named where it has neither
 * arrived nor was skipped, whether its lane has read it or not. Before the verbs on its items.
 * That it is so already is success. */
IBID_CHECK enum ibid_code store_withdraw_event(struct tx *, const struct withdrawal *,
                                               struct ibid_err *);

/* How an event is held, by destination that it is for; also what is passed. */
IBID_CHECK enum ibid_code store_list_holds(struct store *, struct arena *, const char *tenant,
                                           const struct uuid *event_id, struct hold_row **ret,
                                           size_t *ret_count, struct ibid_err *);

/* Of all destinations, by name. */
IBID_CHECK enum ibid_code store_list_lanes(struct store *, struct arena *, struct lane_row **ret,
                                           size_t *ret_count, struct ibid_err *);

/* Evidence of one event, the oldest first. */
IBID_CHECK enum ibid_code store_list_deliveries(struct store *, struct arena *, const char *tenant,
                                                const struct uuid *event_id,
                                                struct delivery_row **ret, size_t *ret_count,
                                                struct ibid_err *);

/* How events stand toward the destinations that they were written for: a row for each of both,
 * the newest event first, its destinations by name. Events that go nowhere are not among them.
 * What is held in a state is found from the hold, and a page of the newest without reading the
 * others; a filter that few events of a tenant fit may read all of them. */
IBID_CHECK enum ibid_code store_list_outbox(struct store *, struct arena *,
                                            const struct outbox_filter *, struct outbox_row **ret,
                                            size_t *ret_count, struct ibid_err *);

#endif
