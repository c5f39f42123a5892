/* SPDX-License-Identifier: Apache-2.0 */
/* command.h -- commands: one row per identity, with what it ended in. */
#ifndef STORE_COMMAND_H
#define STORE_COMMAND_H

#include "base/err.h"
#include "store/row.h"

struct store;
struct tx;

struct identity {
	const char *tenant, *operation, *scope, *key; /* never NULL; scope may be "" */
};

/* X(symbol, name). */
#define COMMAND_STATES(X)                                                                          \
	X(ACCEPTED, "ACCEPTED")                                                                        \
	X(IN_PROGRESS, "IN_PROGRESS")                                                                  \
	X(COMPLETED, "COMPLETED") X(REJECTED, "REJECTED") X(FAILED, "FAILED") X(UNKNOWN, "UNKNOWN")
enum command_state {
#define COMMAND_STATE_ENUM(symbol, name) COMMAND_##symbol,
	COMMAND_STATES(COMMAND_STATE_ENUM)
#undef COMMAND_STATE_ENUM
	    COMMAND_STATE_COUNT
};
const char *command_state_name(enum command_state state); /* "COMPLETED": as the stores keep it */
bool command_state_read(const char *name, enum command_state *ret);

/* The scheme of a FAILED row whose payload was refused as invalid before anything was accepted
 * under the key: another payload may take the row (I2). No fingerprint has it, so a binary that
 * does not know it runs nothing. */
enum { SCHEME_UNBOUND = 0 };

/* One command. COMPLETED rows, and only they, have an audit entry. */
struct command_row {
	struct identity identity;
	struct uuid id;
	enum command_state state;
	int scheme, contract_version; /* under which the fingerprint was made; SCHEME_UNBOUND */
	struct sha256 fingerprint;
	bool linked;                             /* COMPLETED by an existing document */
	int status;                              /* 0: none kept */
	const char *resource_type, *resource_id; /* NULL: none */
	const char *reason,
	    *text;        /* of a rejection or failure; ERASED where the body was; NULL: none */
	const char *body; /* NULL: none kept */
	size_t body_size;
	struct uuid audit_id;                        /* all zero: none */
	int attempts;                                /* runs that left a trace; 1 for the first */
	const char *client, *actor;                  /* who sent it first; NULL: not given */
	int64_t created_us, finished_us, expires_us; /* finished 0: not yet; expires 0: never */

	/* Of a staged command. Whoever has the token may finish it; a finished row keeps it. */
	int64_t lease_token;    /* 0: never staged */
	int64_t lease_us;       /* in: IN_PROGRESS: from now, by the store's clock; 0: no end */
	int64_t lease_until_us; /* out: 0: no end: locked, not free */
	bool stale;             /* out: IN_PROGRESS, and its lease has ended by the store's clock */

	/* Where it came from, while it has no audit entry that says so; NULL: none. */
	const char *correlation_id, *causation_id, *traceparent, *tracestate;
};

/* Has its key outlived its retention? What has no outcome yet never expires. */
bool command_expired(const struct command_row *row, int64_t now_us);

/* Was its payload refused, and may a corrected one take the key? */
bool command_unbound(const struct command_row *row);

struct command_filter {
	const char *tenant;       /* NULL: all */
	const char *operation;    /* NULL: all */
	const char *key;          /* NULL: all */
	const char *client;       /* who sent it first; NULL: all */
	int state;                /* enum command_state; -1: all */
	const struct uuid *after; /* keyset page: rows older than this id; NULL: from the newest */
	size_t limit;
};

/* The same key with another payload: kept once per command, payload and sender, and counted. */
struct key_conflict_row {
	const char *tenant;
	struct uuid command_id;
	struct sha256 fingerprint;  /* of the other payload */
	const char *client, *actor; /* "" when not given */
	int64_t first_us, last_us, count;
};

/* What is kept of the payload that `previous` refused when `row` takes its place with another one.
 * False: nothing. */
bool evidence_of_refused(const struct command_row *row, const struct command_row *previous,
                         struct key_conflict_row *ret);

extern struct words command_state_words;
extern const struct row_shape command_shape, identity_shape, key_conflict_shape;

/* What there is of a tenant. */
struct tenant_row {
	const char *tenant;
	int64_t commands, open_exceptions;
};
extern const struct row_shape tenant_shape;

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* By id, or by identity when `id` is NULL. IBID_NOT_FOUND. `tenant` is always required. */
IBID_CHECK enum ibid_code store_get_command(struct store *, struct arena *, const char *tenant,
                                            const struct uuid *id, const struct identity *,
                                            struct command_row *ret, struct ibid_err *);

/* Newest first. */
IBID_CHECK enum ibid_code store_list_commands(struct store *, struct arena *,
                                              const struct command_filter *,
                                              struct command_row **ret, size_t *ret_count,
                                              struct ibid_err *);

/* Commands UNKNOWN that were staged, the oldest first, without their bodies. Of the filter only
 * tenant, operation, limit and `after` count, which is the id of the last one of the page
 * before. Cheap however many commands have an outcome. */
IBID_CHECK enum ibid_code store_list_unknown(struct store *, struct arena *,
                                             const struct command_filter *,
                                             struct command_row **ret, size_t *ret_count,
                                             struct ibid_err *);

/* Commands IN_PROGRESS whose lease has ended by the store's clock, the longest ended first; one
 * without an end is never among them. Of the filter only tenant, operation and limit count. */
IBID_CHECK enum ibid_code store_list_stale(struct store *, struct arena *,
                                           const struct command_filter *, struct command_row **ret,
                                           size_t *ret_count, struct ibid_err *);

IBID_CHECK enum ibid_code store_put_evidence(struct store *, const struct key_conflict_row *,
                                             struct ibid_err *);

IBID_CHECK enum ibid_code store_list_evidence(struct store *, struct arena *, const char *tenant,
                                              const struct uuid *command_id,
                                              struct key_conflict_row **ret, size_t *ret_count,
                                              struct ibid_err *);

#endif
