/* SPDX-License-Identifier: Apache-2.0 */
/* ibid.h -- the same intent, however often it arrives, ends in one outcome.
 *
 * A program opens a handle on a store (an SQLite file or a PostgreSQL database) and a directory of
 * contracts, then submits commands. A command runs at most once per identity (tenant, operation,
 * the contract's scope, key); its row, the business change, its events and its audit entry commit
 * together. A duplicate gets the first answer back, byte for byte.
 *
 * Conventions
 *   Ownership  Strings passed in are copied where they are kept; they need to live only for the
 *              call. Strings returned by accessors live as long as the object they were read from.
 *   Threads    `struct ibid` may be shared by any number of threads. `struct ibid_work` belongs to
 *              the thread that runs the handler; `struct ibid_result`, `struct ibid_staged` and
 *              `struct ibid_adopted` to whoever received it, one thread at a time. After a fork
 *              the child opens a handle of its own; the parent's refuses it.
 *   Errors     Functions return IBID_OK (0) or a code; `err`, where given and not NULL, then holds
 *              the code, what the caller may do next, and a sentence. Outputs are untouched on
 *              failure. The library never prints and never exits.
 *   Structs    Input structs start with `size`, filled in by the IBID_... macros. The library reads
 *              only `size` bytes and members are only appended, so an old program runs on a newer
 *              library. `struct ibid_err` is frozen. */
#ifndef IBID_H
#define IBID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IBID_VERSION_MAJOR 0
#define IBID_VERSION_MINOR 1
#define IBID_VERSION_PATCH 0

#if defined(__GNUC__)
#define IBID_API   __attribute__((visibility("default")))
#define IBID_CHECK __attribute__((warn_unused_result))
#else
#define IBID_API
#define IBID_CHECK
#endif

/* ---- Errors --------------------------------------------------------------------------------- */

/* One list for the enum, the names and the documentation: X(symbol, name, meaning). */
#define IBID_CODES(X)                                                                              \
	X(IBID_OK, "ok", "done")                                                                       \
	X(IBID_INVALID, "invalid", "the input is wrong; the text says where")                          \
	X(IBID_CONTRACT, "contract", "a contract is wrong, missing or contradicts the store")          \
	X(IBID_NOT_FOUND, "not-found", "no such thing")                                                \
	X(IBID_DENIED, "denied", "the operating system or the database refused permission")            \
	X(IBID_SCHEMA, "schema", "the store's schema does not fit this version of ibid")               \
	X(IBID_BUSY, "busy", "locked by others for too long; nothing was done")                        \
	X(IBID_UNAVAILABLE, "unavailable", "the store can't be reached; nothing was done")             \
	X(IBID_IO, "io", "the store failed to read or write; nothing was done")                        \
	X(IBID_FULL, "full", "no space left for the store; nothing was done")                          \
	X(IBID_LIMIT, "limit", "a documented limit was exceeded")                                      \
	X(IBID_NOMEM, "no-memory", "out of memory; nothing was done")                                  \
	X(IBID_UNKNOWN, "unknown",                                                                     \
	  "a commit did not report success and its outcome could not be read")                         \
	X(IBID_FAILED, "failed", "the handler failed")                                                 \
	X(IBID_REJECTED, "rejected", "the handler rejected the command")                               \
	X(IBID_DUPLICATE, "duplicate", "a declared business uniqueness was hit")                       \
	X(IBID_RETRY, "retry", "deadlock or serialization failure; the transaction was rolled back")   \
	X(IBID_MISUSE, "misuse", "the call breaks the rules of this header")                           \
	X(IBID_INTERNAL, "internal", "a defect in ibid; please report it")                             \
	X(IBID_FENCED, "fenced", "the lease is lost: somebody else has the command; nothing was done") \
	X(IBID_GONE, "gone",                                                                           \
	  "the SQLite file was deleted, renamed or replaced while it was open: open the store anew")

enum ibid_code {
#define IBID_CODE_ENUM(symbol, name, meaning) symbol,
	IBID_CODES(IBID_CODE_ENUM)
#undef IBID_CODE_ENUM
};

/* What the caller may do next. */
enum ibid_next {
	IBID_NEXT_NEVER,    /* the same call will fail again: change the input or the set-up */
	IBID_NEXT_SAME_KEY, /* send the same command again with the same key: that is safe */
	IBID_NEXT_LATER,    /* nothing is wrong with the call: try again after a pause */
};

struct ibid_err {
	enum ibid_code code;
	enum ibid_next next;
	char text[504]; /* one or more lines, no trailing newline, always terminated */
};

/* The short stable name of a code ("busy"). Never NULL. */
IBID_API const char *ibid_code_name(enum ibid_code code);

/* ---- Handles -------------------------------------------------------------------------------- */

struct ibid;         /* an open store with its contracts and handlers */
struct ibid_work;    /* one running command, as its handler sees it */
struct ibid_result;  /* what a submit ended in */
struct ibid_staged;  /* a command that is held under a lease while its work is done outside */
struct ibid_adopted; /* a command in a transaction of the caller's */

enum ibid_log_level { IBID_LOG_DEBUG, IBID_LOG_INFO, IBID_LOG_WARN, IBID_LOG_ERROR };

/* One structured log line: a JSON object without newline. May be called from any thread. */
typedef void ibid_log_fn(void *user, enum ibid_log_level level, const char *json);

struct ibid_options {
	size_t size;
	const char *store;     /* "sqlite:PATH" or "postgres://..."; required */
	const char *contracts; /* directory of contract files; required */
	ibid_log_fn *log;      /* NULL: no log */
	void *log_user;
	unsigned connections; /* PostgreSQL connections at most; 0: 16 */
	unsigned busy_ms;     /* how long to wait for locks and connections; 0: 5000 */
	unsigned queue;       /* commands that may wait to share a commit; 0: 4096 */
	/* Keys for payloads that contracts keep encrypted, one a line: `<key id> <64 hex digits>`. The
	 * first one encrypts, all of them decrypt. NULL: none; a contract that needs one is then
	 * refused. The file must be its owner's alone (mode 600). */
	const char *key_file;
};
#define IBID_OPTIONS(...) (&(struct ibid_options){.size = sizeof(struct ibid_options), __VA_ARGS__})

/* Create or migrate the store, apply the directory's schema files once, and record its contracts.
 * Safe to call again and by several processes at once. Needs the right to create tables. */
IBID_API IBID_CHECK enum ibid_code ibid_init(const struct ibid_options *options,
                                             struct ibid_err *err);

/* Open a store that ibid_init prepared and load the contracts. `*ret` is freed by ibid_close. */
IBID_API IBID_CHECK enum ibid_code ibid_open(const struct ibid_options *options, struct ibid **ret,
                                             struct ibid_err *err);

/* Close; takes NULL. No other thread may still use the handle. */
IBID_API void ibid_close(struct ibid *ibid);

/* ---- Handlers ------------------------------------------------------------------------------- */

/* Run one command. Called inside the command's transaction, possibly several times for one submit
 * (after a deadlock everything it did was rolled back), never after the command has an outcome.
 * Return what ibid_answer, ibid_reject or ibid_duplicate returned; IBID_RETRY after a deadlock or
 * serialization failure; any other code is a failure, handled as the contract's `failures` says.
 * The handler must not commit, roll back or close what ibid_work_... hands out, and leaves its
 * session as it found it. A handler that ends the transaction leaves the command UNKNOWN
 * and an exception for the contract's owner. */
typedef enum ibid_code ibid_handler(struct ibid_work *work, void *user);

/* Register the callback for an operation whose contract says `handler: callback`. Call before the
 * first submit of that operation; not while other threads submit. Without it a command that is done
 * is replayed all the same, and one that is not is IBID_MISUSE. */
IBID_API IBID_CHECK enum ibid_code ibid_handle(struct ibid *ibid, const char *operation,
                                               ibid_handler *handler, void *user,
                                               struct ibid_err *err);

/* Who and what is being run. Never NULL; "" where the caller gave nothing. */
IBID_API const char *ibid_work_tenant(const struct ibid_work *work);
IBID_API const char *ibid_work_operation(const struct ibid_work *work);
IBID_API const char *ibid_work_key(const struct ibid_work *work);
IBID_API const char *ibid_work_client(const struct ibid_work *work);
IBID_API const char *ibid_work_actor(const struct ibid_work *work);
IBID_API const char *
ibid_work_command_id(const struct ibid_work *work);               /* UUID, stable over retries */
IBID_API const char *ibid_work_now(const struct ibid_work *work); /* RFC 3339, UTC */
IBID_API const char *ibid_work_payload(const struct ibid_work *work); /* canonical JSON */

/* A key for the partner that the work calls: a UUID made of tenant, operation, scope and key. The
 * same in every process and version, after a restart, a takeover by recovery, a new run of a failed
 * command, and where an expired key is run again; another for every other command. ("" only without
 * memory.) Lives as long as `work`; call it from the thread that works. */
IBID_API const char *ibid_work_external_key(const struct ibid_work *work);

/* The value of a declared field as exact text: NULL when absent or null. Decimals and integers in
 * plain notation, booleans as "true" or "false", instants in RFC 3339 UTC, json in canonical form.
 */
IBID_API const char *ibid_field_text(const struct ibid_work *work, const char *pointer);

/* The same for an integer field. False when absent or null; `*ret` is then untouched. */
IBID_API bool ibid_field_int64(const struct ibid_work *work, const char *pointer, int64_t *ret);

/* The connection with the command's open transaction: a sqlite3 * or a PGconn *; NULL on the other
 * store. Owned by ibid, or by whoever had it adopted. */
IBID_API void *ibid_work_sqlite(const struct ibid_work *work);
IBID_API void *ibid_work_postgres(const struct ibid_work *work);

struct ibid_event {
	size_t size;
	const char *aggregate_type; /* required */
	const char *aggregate_id;   /* required */
	const char *type;           /* required; must be one of the contract's `emits` */
	const char *payload;        /* JSON; required */
	int64_t version;            /* of the aggregate after this event; 0: the next one */
	const char *key;            /* unique per tenant; NULL: command id and ordinal */
};
#define IBID_EVENT(...) (&(struct ibid_event){.size = sizeof(struct ibid_event), __VA_ARGS__})

/* Append an event to the outbox, in the command's transaction. A version that is not the next of
 * its aggregate rejects the command with VERSION_CONFLICT. IBID_INVALID: it violates its contract
 * (docs/events.md). An error here also fails the command. */
IBID_API enum ibid_code ibid_emit(struct ibid_work *work, const struct ibid_event *event);

/* Answer. `body` is JSON or NULL; it is kept, and given back, in canonical form. */
IBID_API IBID_CHECK enum ibid_code ibid_answer(struct ibid_work *work, int status,
                                               const char *body);

/* Name the resource that the command made or changed (for `answer: {store: reference}`). */
IBID_API void ibid_resource(struct ibid_work *work, const char *type, const char *id);

/* Reject, for good: the business change is rolled back, the rejection is the command's outcome.
 * `reason` is a stable code (A-Z, 0-9, _), `status` 400..499. */
IBID_API IBID_CHECK enum ibid_code ibid_reject(struct ibid_work *work, const char *reason,
                                               int status, const char *text);

/* Say that a unique index declared under the contract's `unique` was violated: ibid rolls back and
 * links to the existing document or rejects with its id, as the contract says. */
IBID_API IBID_CHECK enum ibid_code ibid_duplicate(struct ibid_work *work, const char *unique);

/* Give a reason for a failure. Returns IBID_FAILED. */
IBID_API IBID_CHECK enum ibid_code ibid_fail(struct ibid_work *work, const char *text);

/* ---- Submitting ----------------------------------------------------------------------------- */

struct ibid_command {
	size_t size;
	const char *tenant;    /* required */
	const char *operation; /* required: the contract's name */
	const char *key;       /* required unless the contract derives it from fields */
	const char *payload;   /* JSON; required */
	size_t payload_size;   /* 0: payload is a string */
	const char *client;    /* required where scope or context declares it; likewise: */
	const char *actor;
	const char *resource;
	const char *correlation_id; /* optional; kept with the audit entry and the events */
	const char *causation_id;
	/* W3C trace context, optional; kept with the audit entry and the events, whose consumers are
	 * children of the span that `traceparent` names. IBID_INVALID when it is malformed. What a
	 * higher version than 00 says is kept as far as 00 knows it. */
	const char *traceparent;
	const char *tracestate; /* only with traceparent; printable ASCII, at most 512 bytes */
};
#define IBID_COMMAND(...) (&(struct ibid_command){.size = sizeof(struct ibid_command), __VA_ARGS__})

/* How a submit ended: X(symbol, name, meaning). */
#define IBID_DECISIONS(X)                                                                          \
	X(IBID_DECISION_EXECUTED, "executed", "the command has run")                                   \
	X(IBID_DECISION_REJECTED, "rejected", "a controlled rejection, with its reason")               \
	X(IBID_DECISION_LINKED, "linked", "the business fact existed already: the answer names it")    \
	X(IBID_DECISION_CONFLICT, "conflict",                                                          \
	  "the key was used for another payload; nothing was done")                                    \
	X(IBID_DECISION_IN_PROGRESS, "in_progress", "the same command is being run now")               \
	X(IBID_DECISION_FAILED, "failed", "it failed and may be sent again with the same key")         \
	X(IBID_DECISION_UNKNOWN, "unknown",                                                            \
	  "whether it ran is not known: ask again with the same key")                                  \
	X(IBID_DECISION_EXPIRED, "expired", "the key outlived its retention and may not be used again")

enum ibid_decision {
#define IBID_DECISION_ENUM(symbol, name, meaning) symbol,
	IBID_DECISIONS(IBID_DECISION_ENUM)
#undef IBID_DECISION_ENUM
};

/* The stable name of a decision ("executed"). Never NULL. */
IBID_API const char *ibid_decision_name(enum ibid_decision decision);

/* Bring one command to its outcome. IBID_OK means that there is a decision, whatever it is: a
 * rejection or a conflict is a result, not an error. Any other code means that nothing was decided;
 * `err->next` says whether the same key may be sent again. `*ret` is freed by ibid_result_free.
 * Success is told only after the commit is durable. */
IBID_API IBID_CHECK enum ibid_code ibid_submit(struct ibid *ibid,
                                               const struct ibid_command *command,
                                               struct ibid_result **ret, struct ibid_err *err);

IBID_API enum ibid_decision ibid_result_decision(const struct ibid_result *result);
IBID_API bool ibid_result_replayed(const struct ibid_result *result);    /* an earlier outcome */
IBID_API int ibid_result_status(const struct ibid_result *result);       /* as in HTTP */
IBID_API const char *ibid_result_body(const struct ibid_result *result); /* JSON; "" when none */
IBID_API size_t ibid_result_body_size(const struct ibid_result *result);
IBID_API const char *ibid_result_command_id(const struct ibid_result *result);    /* "" when none */
IBID_API const char *ibid_result_resource_type(const struct ibid_result *result); /* "" when none */
IBID_API const char *ibid_result_resource_id(const struct ibid_result *result);   /* "" when none */
IBID_API const char *ibid_result_reason(const struct ibid_result *result); /* stable code; "" */
IBID_API const char *ibid_result_text(const struct ibid_result *result);   /* a sentence; "" */
/* Of a replayed result: since that outcome was reached. Otherwise: since the key was first seen. */
IBID_API int64_t ibid_result_age_ms(const struct ibid_result *result);
IBID_API int64_t ibid_result_retry_after_ms(const struct ibid_result *result); /* 0: don't */

/* Rejected because the payload is invalid, where the contract says `failures.validation: retry`:
 * the key is bound to no payload, and the corrected one is sent with the same key. The first
 * payload that is accepted binds it. */
IBID_API bool ibid_result_correctable(const struct ibid_result *result);
IBID_API void ibid_result_free(struct ibid_result *result); /* takes NULL */

/* What is kept of a command's payload, as the contract's `payload` and the fields' `class` say:
 * canonical JSON, decrypted where the handle has a key file, with the ciphertext as a text where it
 * has none. `*ret` is freed by ibid_free. IBID_NOT_FOUND: no such command, or nothing is kept.
 * IBID_INVALID: a ciphertext was changed or moved, or its key is another. */
IBID_API IBID_CHECK enum ibid_code ibid_payload(struct ibid *ibid, const char *tenant,
                                                const char *command_id, char **ret,
                                                size_t *ret_size, struct ibid_err *err);

/* ---- Staged commands ------------------------------------------------------------------------ */

/* For work that calls out and can't be part of a transaction; the contract says `staged`. Staging
 * claims the identity and commits it as in progress, under a lease with a fencing token. The caller
 * does the work, renews the lease while it lasts, and ends the command in a second transaction: by
 * finish, fail or unknown. A worker that goes silent is not run again: after its lease has ended,
 * recovery looks first (see ibid_recover), and the worker that wakes up then is fenced:
 * IBID_FENCED, and nothing is changed.
 *
 * ibid_submit does not run a staged operation (IBID_MISUSE), but answers its duplicates. */

/* Claim a command. IBID_OK: either `*ret_staged` is the command to work on, freed by
 * ibid_staged_free, and `*ret` is NULL; or `*ret_staged` is NULL and `*ret` is a decision as
 * ibid_submit gives it, freed by ibid_result_free: an earlier outcome, a conflict, one in progress
 * (at once, with the command's id: no thread and no lock waits unless the contract says so). */
IBID_API IBID_CHECK enum ibid_code ibid_stage(struct ibid *ibid, const struct ibid_command *command,
                                              struct ibid_staged **ret_staged,
                                              struct ibid_result **ret, struct ibid_err *err);

/* What is to be done, for the accessors above; no connection. ibid_work_command_id is the id of the
 * operation: the same for every retry. A partner is given ibid_work_external_key. After a takeover
 * by recovery the payload is not known any more: ibid_work_payload is "", and fields are absent. */
IBID_API const struct ibid_work *ibid_staged_work(const struct ibid_staged *staged);

/* Grows with every takeover: a partner that compares tokens can refuse a worker that was fenced. */
IBID_API int64_t ibid_staged_token(const struct ibid_staged *staged);

/* In an inquiry: from when on the outcome is open, as wall time in microseconds. Of a command whose
 * lease has ended, when that was; of one that is UNKNOWN, when it became so. Its worker may have
 * sent something until then, and what it sent may take a while to arrive: "not executed" proves
 * nothing before that while is over. 0: it is this caller's to do. */
IBID_API int64_t ibid_staged_since_us(const struct ibid_staged *staged);

/* The lease lasts from now again. IBID_FENCED: stop working. Who looks again at what is UNKNOWN
 * holds no lease, and renews none: IBID_OK. */
IBID_API IBID_CHECK enum ibid_code ibid_staged_renew(struct ibid_staged *staged,
                                                     struct ibid_err *err);

/* End it: `handler` is run in a transaction, as ibid_handler says, and answers (or rejects); row,
 * business change, events and audit entry commit together if the lease is still held. A handler
 * that fails, or an event that is refused, is IBID_FAILED: nothing was recorded, and finish may be
 * called again. Ended already by this worker: the outcome is given back. */
IBID_API IBID_CHECK enum ibid_code ibid_staged_finish(struct ibid_staged *staged,
                                                      ibid_handler *handler, void *user,
                                                      struct ibid_result **ret,
                                                      struct ibid_err *err);

/* End it without a success, where the caller knows that nothing has happened outside. `retryable`:
 * the same key may be staged again; otherwise it is rejected for good. */
IBID_API IBID_CHECK enum ibid_code ibid_staged_fail(struct ibid_staged *staged, bool retryable,
                                                    const char *text, struct ibid_result **ret,
                                                    struct ibid_err *err);

/* Nobody knows whether it was done: the command is UNKNOWN and is not run again. */
IBID_API IBID_CHECK enum ibid_code ibid_staged_unknown(struct ibid_staged *staged, const char *text,
                                                       struct ibid_result **ret,
                                                       struct ibid_err *err);

/* Takes NULL. Releases no lease: that of a command which was not ended runs out. */
IBID_API void ibid_staged_free(struct ibid_staged *staged);

/* Find out what became of a command whose worker went silent, where the contract says `recover:
 * inquiry`: ask the partner, then call finish, fail or unknown. IBID_OK without one of them is
 * unknown; any other code leaves it, to be asked about again when the lease has ended. Also asked
 * about what is UNKNOWN, where recovery is told to; then no clear answer changes nothing. */
typedef enum ibid_code ibid_inquirer(struct ibid_staged *staged, void *user);

/* Register it. Not while other threads recover. */
IBID_API IBID_CHECK enum ibid_code ibid_handle_inquiry(struct ibid *ibid, const char *operation,
                                                       ibid_inquirer *inquirer, void *user,
                                                       struct ibid_err *err);

/* Told of each command: `result` is how it ended, or NULL where it was left, for the reason in
 * `text`. */
typedef void ibid_recovered(void *user, const char *tenant, const char *operation,
                            const char *command_id, const struct ibid_result *result,
                            const char *text);

/* Asked of each command that is UNKNOWN and could be looked at again: now? `since_us` as of
 * ibid_staged_since_us. So a caller paces its inquiries. `token` names the attempt: a retry of the
 * same key keeps the command's id, and what was learned about one attempt says nothing about the
 * next. */
typedef bool ibid_wanted(void *user, const char *tenant, const char *operation,
                         const char *command_id, int64_t token, int64_t since_us);

struct ibid_recovery {
	size_t size;
	const char *tenant;    /* NULL: all */
	const char *operation; /* NULL: all */
	size_t limit;          /* commands at most; 0: 100 */
	bool dry_run;          /* only tell */
	ibid_recovered *tell;  /* NULL: nobody */
	void *user;
	bool unknown;        /* look again at what is UNKNOWN, too, the oldest first */
	ibid_wanted *wanted; /* which of these; others do not count for the limit; NULL: all */
};
#define IBID_RECOVERY(...)                                                                         \
	(&(struct ibid_recovery){.size = sizeof(struct ibid_recovery), __VA_ARGS__})

/* Bring commands whose lease has ended to an outcome, as their contracts' `recover` says. Each is
 * taken over under a new token first, so that several may recover at once and the old worker is
 * fenced; none is run again. A lease without an end is never taken. With `unknown`, staged commands
 * that are UNKNOWN are looked at again where there is a script or an inquiry that can: found out,
 * they end and their exception is resolved in the same transaction; otherwise they are left as they
 * are.
 * `*ret_count`: commands that ended. */
IBID_API IBID_CHECK enum ibid_code ibid_recover(struct ibid *ibid,
                                                const struct ibid_recovery *recovery,
                                                size_t *ret_count, struct ibid_err *err);

/* ---- Commands in a transaction of the caller's ---------------------------------------------- */

/* For programs that have a connection and a transaction of their own. The caller begins its
 * transaction, hands the connection over, does its work on it with its own statements, finishes the
 * command and commits: command, business change, events and audit entry are one commit, the
 * caller's. ibid never commits, rolls back or closes the connection, replaces none of its hooks and
 * leaves no statement, function or setting on it. The command's row is there from the adoption on,
 * and the database refuses the commit while a command is unfinished: SQLite with "FOREIGN KEY
 * constraint failed" (the transaction stays open: finish, or roll back), PostgreSQL with SQLSTATE
 * IB011. A rollback, of all or to a savepoint from before the adoption, undoes the command: the key
 * is free again. Operations need no handler for this; staged ones, and those whose strategy is
 * enforced around a handler, are refused (IBID_MISUSE).
 *
 * What these functions write stands behind a savepoint: an error has changed nothing, and the
 * transaction goes on, unless the code is IBID_RETRY (deadlock, serialization failure, SQLite
 * locked or its snapshot outdated: roll back, and run the whole transaction again) or
 * IBID_UNAVAILABLE (the connection is lost). IBID_MISUSE says what is wrong with the connection:
 * no transaction is open, it has failed, a query is running, pipeline mode, `foreign_keys` is off
 * (SQLite), `wal_autocheckpoint` is not 0 (SQLite before 3.51.3), or it is not connected to the
 * database of the store.
 *
 * A transaction may hold any number of commands, several unfinished at once. On SQLite the
 * program must use the same libsqlite3 as ibid, and while its transaction writes, ibid_submit
 * waits for it: never call that from the thread that holds it open. */

struct sqlite3; /* of sqlite3.h */
struct pg_conn; /* PGconn, of libpq-fe.h */

/* Begin a command in the transaction that is open on `db`, or on `conn`. IBID_OK: either
 * `*ret_adopted` is the command to work on now, freed by ibid_adopted_free, and `*ret` is NULL; or
 * `*ret_adopted` is NULL and `*ret`, freed by ibid_result_free, is a decision as ibid_submit gives
 * it: answer so, do nothing, and commit, which keeps the evidence of a conflict, or the rejection
 * of a payload that breaks the contract's fields. A twin that runs is in_progress at once, whatever
 * the contract says of waiting; on SQLite it is waited for as the connection's busy handler says.
 * On PostgreSQL the connection's role needs the tenant, as docs/sql-api.md says. */
IBID_API IBID_CHECK enum ibid_code ibid_adopt_sqlite(struct ibid *ibid, struct sqlite3 *db,
                                                     const struct ibid_command *command,
                                                     struct ibid_adopted **ret_adopted,
                                                     struct ibid_result **ret,
                                                     struct ibid_err *err);
IBID_API IBID_CHECK enum ibid_code ibid_adopt_postgres(struct ibid *ibid, struct pg_conn *conn,
                                                       const struct ibid_command *command,
                                                       struct ibid_adopted **ret_adopted,
                                                       struct ibid_result **ret,
                                                       struct ibid_err *err);

/* The command, as a handler sees it: for the accessors above, ibid_emit and ibid_resource. Lives as
 * long as the handle. Events are noted, and written by ibid_adopted_complete. */
IBID_API struct ibid_work *ibid_adopted_work(struct ibid_adopted *adopted);

/* Finish it, once. `*ret`, freed by ibid_result_free, is its outcome, and true once the caller has
 * committed. After an error the command is still open. `body` is JSON or NULL, `status` 200..399;
 * the resource is that of ibid_resource. IBID_FAILED: an event was refused, such as for a version
 * that is not the next: complete it again, reject or fail it, or roll back. IBID_MISUSE: it is not
 * open in this transaction. A mistake in ibid_emit is reported here. */
IBID_API IBID_CHECK enum ibid_code ibid_adopted_complete(struct ibid_adopted *adopted, int status,
                                                         const char *body, struct ibid_result **ret,
                                                         struct ibid_err *err);

/* The same where a unique index has shown that the business fact exists already: the answer and
 * the resource are those of the existing document, and no events are written. */
IBID_API IBID_CHECK enum ibid_code ibid_adopted_link(struct ibid_adopted *adopted, int status,
                                                     const char *body, struct ibid_result **ret,
                                                     struct ibid_err *err);

/* Finish it without success: rejected for `reason`, as with ibid_reject, or failed, as with
 * ibid_fail; the contract says whether the same key may try again. Events that were noted are
 * forgotten. What the caller has done itself it undoes itself: set a savepoint before the work and
 * roll back to it first. IBID_MISUSE on PostgreSQL: what was written since the adoption stands, and
 * the text names the table; SQLite can't tell. */
IBID_API IBID_CHECK enum ibid_code ibid_adopted_reject(struct ibid_adopted *adopted,
                                                       const char *reason, int status,
                                                       const char *text, struct ibid_result **ret,
                                                       struct ibid_err *err);
IBID_API IBID_CHECK enum ibid_code ibid_adopted_fail(struct ibid_adopted *adopted, const char *text,
                                                     struct ibid_result **ret,
                                                     struct ibid_err *err);

/* Takes NULL. Before ibid_close; the connection may be closed before or after. Touches nothing: an
 * unfinished command stays so, and its commit is refused. */
IBID_API void ibid_adopted_free(struct ibid_adopted *adopted);

/* ---- Erasure -------------------------------------------------------------------------------- */

/* What is to be forgotten, on request, of one tenant. Exactly one of: a command by its id; one by
 * operation and key; all of a resource; all of an actor. */
struct ibid_erasure {
	size_t size;
	const char *tenant;     /* required */
	const char *command_id; /* or */
	const char *operation;  /* with a key, and a scope where several senders used it; or */
	const char *key;
	const char *scope;
	const char *resource_type; /* both; or */
	const char *resource_id;
	const char *actor;
	const char *by;     /* who has it done; required; kept in the record */
	const char *reason; /* required; likewise */
	size_t batch;       /* commands a transaction; 0: 1000 */
	bool dry_run;       /* only count */
};
#define IBID_ERASURE(...) (&(struct ibid_erasure){.size = sizeof(struct ibid_erasure), __VA_ARGS__})

/* Erase the payloads, bodies and texts of these commands, the payloads of their events, and the
 * names of who sent duplicates of them; of an actor, its name and client, too. Keys, fingerprints,
 * states, ids, times and audit entries stay: a duplicate is recognised, and a completed command
 * that lost its body answers with its status, its resource, no body and the reason ERASED. Commands
 * without an outcome are left. `*ret` is a JSON object with what was erased (commands, payloads,
 * bodies, texts, events, names, exceptions), how many commands were `left` for want of an outcome,
 * and the `erasure` id of the record, or null where nothing was to be erased; freed by ibid_free.
 * Runs in small transactions, may be cut off, and is finished by being called again.
 * IBID_NOT_FOUND: no such command. IBID_DENIED: PostgreSQL: the role is no member of ibid_eraser.
 */
IBID_API IBID_CHECK enum ibid_code ibid_erase(struct ibid *ibid, const struct ibid_erasure *erasure,
                                              char **ret, struct ibid_err *err);

/* ---- Identity and meaning, without a store -------------------------------------------------- */

/* The canonical form of a JSON text: RFC 8785, except that a number which a double would change
 * keeps all its digits. `*ret` is freed by ibid_free. Errors carry line and column. */
IBID_API IBID_CHECK enum ibid_code ibid_canonical(const char *json, size_t size, char **ret,
                                                  size_t *ret_size, struct ibid_err *err);

/* Release what the library handed out as plain memory; takes NULL. */
IBID_API void ibid_free(void *memory);

/* "0.1.0" */
IBID_API const char *ibid_version(void);

#ifdef __cplusplus
}
#endif
#endif
