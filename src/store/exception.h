/* SPDX-License-Identifier: Apache-2.0 */
/* exception.h -- human work: whatever stopped, why, whose it is and what may be done about it (I8).
 */
#ifndef STORE_EXCEPTION_H
#define STORE_EXCEPTION_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;

/* Human work waits in queues, each with its own kind of people: X(symbol, name). */
#define EXCEPTION_QUEUES(X)                                                                        \
	X(DEAD_LETTER, "dead-letter") /* can't be processed: platform and integration */               \
	X(BUSINESS, "business")       /* well-formed, but can't complete: the contract's owner */      \
	X(RECONCILIATION, "reconciliation") /* two sides differ */                                     \
	X(SECURITY, "security")             /* unauthorized or suspicious */                           \
	X(DATA_QUALITY, "data-quality")     /* reference data is missing or wrong */
enum exception_queue {
#define EXCEPTION_QUEUE_ENUM(symbol, name) QUEUE_##symbol,
	EXCEPTION_QUEUES(EXCEPTION_QUEUE_ENUM)
#undef EXCEPTION_QUEUE_ENUM
	    EXCEPTION_QUEUE_COUNT
};
const char *exception_queue_name(enum exception_queue queue); /* as the stores keep it; likewise: */
bool exception_queue_read(const char *name, enum exception_queue *ret);

#define EXCEPTION_SEVERITIES(X)                                                                    \
	X(LOW, "low") X(MEDIUM, "medium") X(HIGH, "high") X(CRITICAL, "critical")
enum exception_severity {
#define EXCEPTION_SEVERITY_ENUM(symbol, name) SEVERITY_##symbol,
	EXCEPTION_SEVERITIES(EXCEPTION_SEVERITY_ENUM)
#undef EXCEPTION_SEVERITY_ENUM
	    EXCEPTION_SEVERITY_COUNT
};
const char *exception_severity_name(enum exception_severity severity);
bool exception_severity_read(const char *name, enum exception_severity *ret);

#define EXCEPTION_STATES(X) X(OPEN, "OPEN") X(RESOLVED, "RESOLVED")
enum exception_state {
#define EXCEPTION_STATE_ENUM(symbol, name) EXCEPTION_##symbol,
	EXCEPTION_STATES(EXCEPTION_STATE_ENUM)
#undef EXCEPTION_STATE_ENUM
	    EXCEPTION_STATE_COUNT
};
const char *exception_state_name(enum exception_state state);
bool exception_state_read(const char *name, enum exception_state *ret);

/* An item of human work: whatever stopped, why, whose it is and what may be done about it (I8). */
struct exception_row {
	const char *tenant;
	struct uuid id;
	enum exception_queue queue;
	enum exception_state state;
	enum exception_severity severity;
	const char *subject_type, *subject_id; /* what stopped: "command" and its id */
	const char *business_key;              /* as its sender knows it; NULL: none; likewise: */
	const char *source;                    /* the system it came from */
	const char *payload_ref;               /* which payload: never the payload itself */
	const char *reason;                    /* stable code: never NULL */
	const char *detail;                    /* a sentence; NULL: none; likewise: */
	const char *suggestion;
	const char *owner;          /* team: never NULL */
	bool retryable;             /* sending it again is safe and may help */
	const char *actions;        /* what may be done, names joined by commas; "": nothing */
	const char *needs_approval; /* of them, those that a second person approves; NULL in: none */
	const char *assignee;       /* out: who works on it; NULL: nobody yet */
	const char *service_answer; /* what a service said that does not tell whether it was done, as it
	                               may be kept; a list leaves it out */
	const char *correlation_id, *trace_id;
	const char *document_type, *document_id; /* the related document; NULL: none */
	int64_t opened_us, due_us;               /* due 0: no limit */
	int64_t resolved_us;                     /* 0: open; then all of these are NULL: */
	const char *resolution, *resolved_by, *note;
};

/* How an item ends: the one of `id`, or that which is open for a queue and subject. */
struct exception_end {
	const char *tenant;
	const struct uuid *id;       /* NULL: by queue and subject */
	const struct uuid *approval; /* with an id: what is decided with it; NULL: nothing */
	enum exception_queue queue;
	const char *subject_type, *subject_id;
	int64_t resolved_us;
	const char *resolution, *resolved_by; /* never NULL or empty */
	const char *note;                     /* NULL: none */
};

/* Whose work an item is. */
struct exception_assignment {
	const char *tenant;
	struct uuid id;
	const char *owner, *assignee; /* NULL: as it is */
};

struct exception_filter {
	const char *tenant; /* NULL: all */
	int queue;          /* enum exception_queue; -1: all */
	int state;          /* enum exception_state; -1: all */
	const char *owner;  /* NULL: all; likewise: */
	const char *assignee;
	const char *subject_type; /* with its id, the work on one subject */
	const char *subject_id;
	const struct uuid *after; /* keyset page: items older than this id; NULL: from the newest */
	size_t limit;
};

extern struct words exception_queue_words, exception_severity_words, exception_state_words;
extern const struct row_shape exception_shape;

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* Open an item of human work together with what stopped (I1, I8). One that is open for the same
 * tenant, queue and subject stays as it is: that is success. The id must be new. */
IBID_CHECK enum ibid_code store_put_exception(struct tx *, const struct exception_row *,
                                              struct ibid_err *);

/* Resolve the item that is open for this tenant, queue and subject, together with what ends its
 * trouble (I1). None is open: that is success. Of one that is named by its id, it is
 * IBID_RETRY, from here or from commit. What was proposed for the item lapses. */
IBID_CHECK enum ibid_code store_resolve_exception(struct tx *, const struct exception_end *,
                                                  struct ibid_err *);

/* Give an item that is open to a team or a person; with neither, only hold it as it is until
 * the transaction ends. IBID_RETRY, from here or from commit: it is not open. */
IBID_CHECK enum ibid_code store_assign_exception(struct tx *, const struct exception_assignment *,
                                                 struct ibid_err *);

/* IBID_NOT_FOUND when the tenant has no such item. */
IBID_CHECK enum ibid_code store_get_exception(struct store *, struct arena *, const char *tenant,
                                              const struct uuid *id, struct exception_row *ret,
                                              struct ibid_err *);

/* Newest first. */
IBID_CHECK enum ibid_code store_list_exceptions(struct store *, struct arena *,
                                                const struct exception_filter *,
                                                struct exception_row **ret, size_t *ret_count,
                                                struct ibid_err *);

#endif
