/* SPDX-License-Identifier: Apache-2.0 */
/* people.h -- rows about people: work that waits for them, what they did, proposed and paused, and
 * the tokens that prove who they are. */
#ifndef STORE_PEOPLE_H
#define STORE_PEOPLE_H

#include "base/arena.h"
#include "base/id.h"
#include "base/token.h"

#include <stdbool.h>
#include <stdint.h>

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

/* What a person did: evidence, which commits with what it did. */
struct action_row {
	const char *tenant;
	struct uuid id;
	int64_t at_us;
	const char *actor, *token; /* the token's client, and its id */
	const char *role;          /* the one that allowed it */
	const char *action;        /* "assign", "confirm-executed", "approve", ... */
	const char *subject_type, *subject_id;
	const char *reason;      /* never empty */
	const char *parameters;  /* JSON; NULL: none */
	struct uuid approval_id; /* all zero: nobody else was asked */
};

#define APPROVAL_DECISIONS(X) X(APPROVED) X(DECLINED) X(LAPSED)
enum approval_decision {
	APPROVAL_WAITS, /* not decided */
#define APPROVAL_DECISION_ENUM(name) APPROVAL_##name,
	APPROVAL_DECISIONS(APPROVAL_DECISION_ENUM)
#undef APPROVAL_DECISION_ENUM
	    APPROVAL_DECISION_COUNT
};
const char *approval_decision_name(enum approval_decision decision);        /* NULL: it waits */
bool approval_decision_read(const char *name, enum approval_decision *ret); /* NULL: it waits */

/* What one person proposes and another decides. One waits per subject. */
struct approval_row {
	const char *tenant;
	struct uuid id;
	const char *subject_type, *subject_id;
	const char *action, *parameters; /* JSON; NULL: none */
	const char *proposed_by, *proposed_token, *reason;
	int64_t proposed_us;
	/* Out. */
	enum approval_decision decision;
	const char *decided_by, *decided_token, *decided_reason; /* NULL: it waits; or lapsed */
	int64_t decided_us;                                      /* 0: it waits */
};

struct approval_end {
	const char *tenant;
	struct uuid id;
	enum approval_decision decision;
	const char *decided_by, *decided_token, *decided_reason;
	const char *parameters; /* what stays of them */
	int64_t decided_us;
};

/* What may be paused: X(symbol, name). */
#define PAUSE_KINDS(X)                                                                             \
	X(RELAY, "relay")             /* nothing is sent anywhere */                                   \
	X(DESTINATION, "destination") /* nothing is sent there */                                      \
	X(EVENT, "event")             /* events of one type of one tenant, and what follows them */
enum pause_kind {
#define PAUSE_KIND_ENUM(symbol, name) PAUSE_##symbol,
	PAUSE_KINDS(PAUSE_KIND_ENUM)
#undef PAUSE_KIND_ENUM
	    PAUSE_KIND_COUNT
};
const char *pause_kind_name(enum pause_kind kind); /* as the stores keep it */
bool pause_kind_read(const char *name, enum pause_kind *ret);

/* Something that does not go on until somebody says so. */
struct pause_row {
	enum pause_kind kind;
	const char *tenant;      /* of an event type; "": it concerns all */
	const char *name;        /* of the destination or event type; "": the relay as a whole */
	bool by_relay;           /* the destination refused all; else a person paused it */
	const char *by, *reason; /* never empty */
	int64_t since_us;
	const char *item_tenant; /* where an exception tells about it; NULL: none does */
};

/* What a token allows: X(symbol, name). */
#define TOKEN_ROLES(X)                                                                             \
	X(CLIENT, "client")     /* send commands, and look at its own client's */                      \
	X(OPERATOR, "operator") /* look at all of the tenant's, and work on its exceptions */          \
	X(APPROVER, "approver") /* decide what waits for a person */                                   \
	X(ADMIN, "admin")       /* set up */
enum token_role_place {
#define TOKEN_ROLE_PLACE(symbol, name) ROLE_PLACE_##symbol,
	TOKEN_ROLES(TOKEN_ROLE_PLACE)
#undef TOKEN_ROLE_PLACE
};
enum token_role {
#define TOKEN_ROLE_BIT(symbol, name) ROLE_##symbol = 1 << ROLE_PLACE_##symbol,
	TOKEN_ROLES(TOKEN_ROLE_BIT)
#undef TOKEN_ROLE_BIT
};

/* As the stores keep them: names joined by commas, each of them known and at least one. */
const char *token_roles_write(struct arena *arena, unsigned roles);
bool token_roles_read(const char *text, unsigned *ret);

/* A bearer token of the server. */
struct token_row {
	struct token token;
	const char *tenant, *client; /* whose it is: what enters the scope of keys */
	unsigned roles;
	const char *created_by;
	int64_t created_us, expires_us; /* expires 0: never */
	int64_t revoked_us;             /* out: 0: it is not */
	const char *revoked_by;         /* out: NULL: it is not */
};

struct token_filter {
	const char *tenant; /* NULL: all */
	const char *after;  /* keyset page: tokens older than the one of this id; NULL: the newest */
	size_t limit;
};

#endif
