/* SPDX-License-Identifier: Apache-2.0 */
/* store.h -- what ibid asks of a database, in the words of the ledger.
 *
 * A store is a pool of connections to one database; any number of threads may use it. A transaction
 * (`struct tx`) holds one of its connections and belongs to one thread. Each backend writes the
 * best SQL its engine has; what every verb promises is written here and proven by one suite that
 * runs on every backend. Two decorators wrap any store: one traces, one fails or kills at the N-th
 * verb.
 *
 * Strings in outputs live in the arena that was passed in. `err` is never NULL here. Codes that a
 * verb may return beside those it names: IBID_UNAVAILABLE (not connected, connection lost before a
 * commit was sent), IBID_BUSY (locked too long), IBID_IO, IBID_FULL, IBID_DENIED, IBID_NOMEM,
 * IBID_RETRY (deadlock or serialization failure; the transaction must be rolled back). */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/arena.h"
#include "base/env.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

/* The schema that this binary writes. It also works on the next one (rolling upgrades). */
enum { STORE_SCHEMA = 2 };

/* ---- Records -------------------------------------------------------------------------------- */

struct identity {
	const char *tenant, *operation, *scope, *key; /* never NULL; scope may be "" */
};

#define COMMAND_STATES(X) X(ACCEPTED) X(IN_PROGRESS) X(COMPLETED) X(REJECTED) X(FAILED) X(UNKNOWN)
enum command_state {
#define COMMAND_STATE_ENUM(name) COMMAND_##name,
	COMMAND_STATES(COMMAND_STATE_ENUM)
#undef COMMAND_STATE_ENUM
	    COMMAND_STATE_COUNT
};
const char *command_state_name(enum command_state state); /* "COMPLETED": as the stores keep it */
bool command_state_read(const char *name, enum command_state *ret);

/* One command. COMPLETED rows, and only they, have an audit entry. */
struct command_row {
	struct identity identity;
	struct uuid id;
	enum command_state state;
	int scheme, contract_version; /* under which the fingerprint was made */
	struct sha256 fingerprint;
	bool linked;                             /* COMPLETED by an existing document */
	int status;                              /* 0: none kept */
	const char *resource_type, *resource_id; /* NULL: none */
	const char *reason, *text;               /* of a rejection or failure; NULL: none */
	const char *body;                        /* NULL: none kept */
	size_t body_size;
	struct uuid audit_id;                        /* all zero: none */
	int attempts;                                /* runs that left a trace; 1 for the first */
	const char *client, *actor;                  /* who sent it first; NULL: not given */
	int64_t created_us, finished_us, expires_us; /* finished 0: not yet */
};

/* Business evidence: one per accepted intent. */
struct audit_row {
	struct uuid id; /* out only: the command's */
	struct uuid command_id;
	const char *tenant, *operation, *fact, *outcome; /* outcome: "executed" or "linked" */
	int contract_version;
	const char *client, *actor, *resource_type, *resource_id; /* NULL: none */
	const char *correlation_id, *causation_id;
	struct sha256 fingerprint;
	int64_t at_us;
};

enum { EVENT_ORDINAL_MAX = 65535 };

/* A fact to tell others; an immutable outbox row. */
struct event_row {
	struct uuid id; /* out only: uuid_nth(command_id, ordinal) */
	struct uuid command_id;
	const char *tenant, *aggregate_type, *aggregate_id, *type, *payload;
	int64_t version; /* in: 0 asks for the next one; out: the version it got */
	const char *key; /* NULL in: "<command id>:<ordinal>"; given by the caller: unique per tenant */
	int ordinal;     /* within the command, from 1 */
	const char *correlation_id, *causation_id;
	int64_t at_us;
};

/* The same key with another payload: kept once per command, payload and sender, and counted. */
struct evidence_row {
	const char *tenant;
	struct uuid command_id;
	struct sha256 fingerprint;  /* of the other payload */
	const char *client, *actor; /* "" when not given */
	int64_t first_us, last_us, count;
};

/* What another system calls a resource: (tenant, source system, external id) and the one resource
 * it stands for. A resource has one id in each system that knows it. */
struct reference_row {
	const char *tenant, *source_system, *external_id, *resource_type, *resource_id;
	struct uuid command_id; /* that linked them */
	int64_t at_us;
};

struct contract_row {
	const char *kind, *name;
	int version;
	struct sha256 digest;
	const char *text;
	int64_t at_us;
};

/* ---- Scripts -------------------------------------------------------------------------------- */

enum param_type {
	PARAM_TEXT,
	PARAM_INTEGER,
	PARAM_DECIMAL,
	PARAM_BOOLEAN,
	PARAM_DATE,
	PARAM_INSTANT,
	PARAM_JSON,
	PARAM_UUID
};

struct param_spec {
	const char *name;
	enum param_type type;
};

/* A handler script, split and checked, ready to run on any connection of its store. Immutable. */
struct script;

/* What a handler, or the row that a `find` script returned, says. */
struct outcome {
	int status;
	const char *body; /* JSON as the handler wrote it; NULL: none */
	size_t body_size;
	const char *resource_type, *resource_id; /* NULL: none */
	const char *reason, *text; /* IBID_REJECTED: code and sentence; IBID_FAILED: what went wrong */
	const char *unique;        /* IBID_DUPLICATE: the index or constraint that was hit */
	bool found;                /* the last statement returned a row */
};

/* What a script's emit needs to know about the command it runs for. */
struct work_context {
	struct uuid command_id;
	const char *tenant, *correlation_id, *causation_id; /* ids: NULL: none */
	const char *const *emits;                           /* event types that the contract declares */
	size_t emit_count;
	int64_t now_us;
};

/* ---- Transactions --------------------------------------------------------------------------- */

struct store {
	const struct store_ops *ops;
};

struct tx {
	struct store *store;
};

enum claim_kind {
	CLAIM_FREE,  /* nobody has used this identity: the transaction may run it */
	CLAIM_FOUND, /* there is a row */
	CLAIM_BUSY,  /* a twin is running it now */
};

struct claim {
	enum claim_kind kind;
	struct command_row row; /* CLAIM_FOUND */
	struct tx *tx; /* CLAIM_FREE: open. CLAIM_FOUND: open, or NULL where the row is COMPLETED.
	                  CLAIM_BUSY: NULL */
};

/* A command that a script can run from end to end. Status and resource of the row come from its
 * answer. */
struct express {
	const struct work_context *context;
	const struct script *script;
	const char *const *values;
	const struct command_row *row;
	const struct audit_row *audit;
	bool keep_status, keep_resource;
};

struct command_filter {
	const char *tenant;       /* NULL: all */
	const char *operation;    /* NULL: all */
	const char *key;          /* NULL: all */
	int state;                /* enum command_state; -1: all */
	const struct uuid *after; /* keyset page: rows older than this id; NULL: from the newest */
	size_t limit;
};

/* One side of references, the other NULL. */
struct reference_filter {
	const char *tenant;
	const char *source_system, *external_id;
	const char *resource_type, *resource_id;
};

enum finding_level { FINDING_OK, FINDING_WARN, FINDING_REFUSE };
typedef void finding_fn(void *user, enum finding_level level, const char *what, const char *advice);

struct schema_file {
	const char *name, *text;
	const char *const *decimals; /* parameters that get decimals */
	size_t decimal_count;
	int64_t now_us;
};

enum schema_state { SCHEMA_APPLIED, SCHEMA_ALREADY, SCHEMA_CHANGED };

struct store_ops {
	const char *name; /* "sqlite", "postgres" */

	void (*close)(struct store *);

	/* ---- Set-up: each is one transaction of its own ---------------------------------------------
	 */

	/* Bring the schema to STORE_SCHEMA. Safe when run twice and by several processes at once: one
	 * does it, the others wait. A store whose schema is newer than STORE_SCHEMA + 1 is IBID_SCHEMA.
	 */
	enum ibid_code (*migrate)(struct store *, int *ret_from, int *ret_to, struct ibid_err *);

	/* IBID_OK when this binary may work on the store; IBID_SCHEMA otherwise, saying what to do. A
	 * store without any schema is IBID_SCHEMA with *ret_version 0. */
	enum ibid_code (*check_schema)(struct store *, int *ret_version, struct ibid_err *);

	/* Run the user's schema file once per name, in one transaction with the note that it ran. A
	 * column whose name is in `decimals` must hold a decimal exactly: IBID_CONTRACT names one that
	 * would round (SQLite: any affinity but text; PostgreSQL: float), and nothing of the file
	 * remains. */
	enum ibid_code (*apply_schema)(struct store *, const struct schema_file *,
	                               enum schema_state *ret, struct ibid_err *);

	/* The same check for tables that came another way. */
	enum ibid_code (*check_decimal_column)(struct store *, const char *name, struct ibid_err *);

	/* Keep a contract. Kept already with the same digest: success. With another: IBID_CONTRACT. */
	enum ibid_code (*put_contract)(struct store *, const struct contract_row *, struct ibid_err *);

	/* Version 0 asks for the newest. IBID_NOT_FOUND when it was never kept. */
	enum ibid_code (*get_contract)(struct store *, struct arena *, const char *kind,
	                               const char *name, int version, struct contract_row *ret,
	                               struct ibid_err *);

	/* Split and check a script: transaction control, session settings, LISTEN and COPY are refused,
	 * as are parameters that are not in `params` (IBID_CONTRACT with file and line). Freed by
	 * free_script. */
	enum ibid_code (*make_script)(struct store *, const char *file, const char *text,
	                              const struct param_spec *params, size_t count,
	                              struct script **ret, struct ibid_err *);
	void (*free_script)(struct store *, struct script *); /* takes NULL */

	/* ---- One command ----------------------------------------------------------------------------
	 */

	/* Open a transaction and claim the identity without waiting for a twin (SQLite: after waiting
	 * for the writer lock). The row's body is read too. Two transactions never both hold
	 * CLAIM_FREE, or CLAIM_FOUND with an open transaction, for one identity. `context` is what emit
	 * in scripts sees; where a row is found, its own id takes the place of context's. */
	enum ibid_code (*claim)(struct store *, struct arena *, const struct identity *,
	                        const struct work_context *context, struct claim *ret,
	                        struct ibid_err *);

	/* The short way for a script whose body is not kept, where a store saves round trips by it;
	 * NULL where it does not. Claim the identity, run the script, write the row and the audit entry
	 * and commit, all at once. `*ret_done`: committed, and `ret_outcome` is what the script
	 * answered. Otherwise nothing was done: `ret` is CLAIM_FOUND with a COMPLETED row, CLAIM_BUSY,
	 * or CLAIM_FREE for anything that only the long way (claim and the verbs below) can tell or do;
	 * its tx is always NULL. Codes of run_script and commit mean the same here; IBID_UNKNOWN as for
	 * commit. */
	enum ibid_code (*express)(struct store *, struct arena *, const struct express *,
	                          struct claim *ret, struct outcome *ret_outcome, bool *ret_done,
	                          struct ibid_err *);

	/* After a commit of unknown outcome, or to wait for a twin: on a new connection to the primary,
	 * wait at most `wait_us` for whoever holds the identity, then look (I7). Gives CLAIM_FREE (no
	 * row), CLAIM_FOUND or CLAIM_BUSY (still held), always with tx NULL. */
	enum ibid_code (*resolve)(struct store *, struct arena *, const struct identity *,
	                          int64_t wait_us, struct claim *ret, struct ibid_err *);

	/* Run a script in the transaction. `values` are in the order of make_script's params; NULL is
	 * SQL NULL. IBID_OK: the last row of the last statement is in `ret`. IBID_REJECTED,
	 * IBID_DUPLICATE, IBID_FAILED and IBID_RETRY: the transaction can only be rolled back; `ret`
	 * says why. Events that the script emits are appended in the transaction; an event whose
	 * version is not the next is IBID_REJECTED with reason VERSION_CONFLICT, one that the contract
	 * does not declare IBID_FAILED. */
	enum ibid_code (*run_script)(struct tx *, struct arena *, const struct script *,
	                             const char *const *values, struct outcome *ret, struct ibid_err *);

	/* Append an event: move the aggregate's head from version - 1 to version, or by one, and insert
	 * the row. Reported here or by commit: another version than the next is IBID_REJECTED with
	 * reason VERSION_CONFLICT and status 409; a key that was used before IBID_REJECTED with
	 * EVENT_KEY_USED. */
	enum ibid_code (*put_event)(struct tx *, const struct event_row *, struct ibid_err *);
	enum ibid_code (*put_audit)(struct tx *, const struct audit_row *, struct ibid_err *);

	/* Write the command's row, complete. `previous` is the row that claim found (FAILED, or
	 * REJECTED and evaluated again), which is replaced by compare-and-set, or NULL for a new one.
	 * IBID_RETRY when another row is there: the primary key arbitrates (I2). */
	enum ibid_code (*put_command)(struct tx *, const struct command_row *,
	                              const struct command_row *previous, struct ibid_err *);

	/* The database handle for C callbacks: sqlite3 * or PGconn *, ready for the caller's
	 * statements. While it is lent (until lend is called with false, before the next verb) the
	 * callback can't end the transaction on SQLite; on PostgreSQL commit notices that it did
	 * (IBID_MISUSE). */
	void *(*lend)(struct tx *, bool lent);

	/* Make it durable. Takes the transaction, whatever comes back. Errors of put_... verbs may be
	 * reported here. IBID_UNKNOWN: the commit was sent and did not report success (I7); any other
	 * code: rolled back, with `ret` as run_script fills it (IBID_DUPLICATE: a deferred constraint).
	 */
	enum ibid_code (*commit)(struct tx **, struct arena *, struct outcome *ret, struct ibid_err *);
	void (*rollback)(struct tx **); /* no-op on a NULL transaction */

	/* ---- Evidence and looking -------------------------------------------------------------------
	 */

	enum ibid_code (*put_evidence)(struct store *, const struct evidence_row *, struct ibid_err *);

	/* By id, or by identity when `id` is NULL. IBID_NOT_FOUND. `tenant` is always required. */
	enum ibid_code (*get_command)(struct store *, struct arena *, const char *tenant,
	                              const struct uuid *id, const struct identity *,
	                              struct command_row *ret, struct ibid_err *);
	/* Newest first. */
	enum ibid_code (*list_commands)(struct store *, struct arena *, const struct command_filter *,
	                                struct command_row **ret, size_t *ret_count, struct ibid_err *);
	/* Of one command; or of the tenant (newest first, at most `limit`) when command_id is NULL. */
	enum ibid_code (*list_events)(struct store *, struct arena *, const char *tenant,
	                              const struct uuid *command_id, size_t limit,
	                              struct event_row **ret, size_t *ret_count, struct ibid_err *);
	enum ibid_code (*list_audit)(struct store *, struct arena *, const char *tenant,
	                             const struct uuid *command_id, size_t limit,
	                             struct audit_row **ret, size_t *ret_count, struct ibid_err *);
	enum ibid_code (*list_evidence)(struct store *, struct arena *, const char *tenant,
	                                const struct uuid *command_id, struct evidence_row **ret,
	                                size_t *ret_count, struct ibid_err *);

	/* By external id: one at most. By resource: one for each system that knows it, by its name. */
	enum ibid_code (*list_references)(struct store *, struct arena *,
	                                  const struct reference_filter *, struct reference_row **ret,
	                                  size_t *ret_count, struct ibid_err *);

	/* Tell what is unsafe about this database and how it is set up. */
	enum ibid_code (*doctor)(struct store *, finding_fn *, void *user, struct ibid_err *);
};

/* ---- Opening -------------------------------------------------------------------------------- */

struct store_options {
	const char *url;      /* "sqlite:PATH", "postgres://..." or "postgresql://..." */
	bool create;          /* SQLite: create a missing file (init, migrate) */
	unsigned connections; /* at most */
	unsigned busy_ms;
	struct env *env;
	struct log log;
};

/* Opens and connects. IBID_INVALID: not a store URL; IBID_NOT_FOUND: no such file; IBID_DENIED;
 * IBID_IO: a directory, or not a database; IBID_UNAVAILABLE: the server can't be reached. The text
 * never holds a password. */
IBID_CHECK enum ibid_code store_open(const struct store_options *options, struct store **ret,
                                     struct ibid_err *err);
IBID_CHECK enum ibid_code store_sqlite_open(const struct store_options *options, const char *path,
                                            struct store **ret, struct ibid_err *err);
IBID_CHECK enum ibid_code store_postgres_open(const struct store_options *options,
                                              struct store **ret, struct ibid_err *err);
void store_close(struct store *store); /* takes NULL */

/* "sqlite:pay.db" or "postgres://user:***@host/db": for messages. */
const char *store_url_redacted(struct arena *arena, const char *url);

/* ---- Decorators ----------------------------------------------------------------------------- */

/* Called before and after every verb. `verb` is the member's name. */
typedef void store_trace_fn(void *user, const char *verb, bool after, enum ibid_code code);
struct store *store_trace_wrap(struct store *inner, store_trace_fn *fn,
                               void *user); /* owns inner */

enum fault_kind {
	FAULT_ERROR_BEFORE, /* the verb is not run and reports IBID_UNAVAILABLE */
	FAULT_ERROR_AFTER, /* the verb is run; a commit reports IBID_UNKNOWN, others IBID_UNAVAILABLE */
	FAULT_UNKNOWN_BEFORE, /* a commit is rolled back and reports IBID_UNKNOWN; others as
	                         ERROR_BEFORE */
	FAULT_KILL_BEFORE,    /* SIGKILL to this process, before the verb */
	FAULT_KILL_AFTER,
};
/* Act once, at the N-th verb from 1 (close, rollback, lend and free_script can't fail and are not
 * counted). Owns inner.
 */
struct store *store_fault_wrap(struct store *inner, enum fault_kind kind, unsigned n);
bool store_fault_fired(const struct store *store);
unsigned store_fault_verbs(const struct store *store); /* counted so far */

#endif
