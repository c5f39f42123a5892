/* SPDX-License-Identifier: Apache-2.0 */
/* store.h -- what ibid asks of a database, in the words of the ledger.
 *
 * A store is a pool of connections to one database; any number of threads may use it. A transaction
 * (`struct tx`) holds one of its connections and belongs to one thread. Each backend writes the
 * best SQL its engine has; what every verb promises is written here and proven by one suite that
 * runs on every backend.
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
#include "base/library.h"
#include "base/log.h"
#include "base/token.h"
#include "store/action.h"
#include "store/audit.h"
#include "store/command.h"
#include "store/contract.h"
#include "store/duplicate.h"
#include "store/erasure.h"
#include "store/event.h"
#include "store/exception.h"
#include "store/hook.h"
#include "store/pause.h"
#include "store/payload.h"
#include "store/reference.h"
#include "store/retention.h"
#include "store/token.h"

#include <stdbool.h>
#include <stdint.h>

/* The schema that this binary writes. It also works on the next one (rolling upgrades). */
enum { STORE_SCHEMA = 2 };

/* ---- Records -------------------------------------------------------------------------------- */

/* How a ledger stands, over all tenants. */
struct measurement {
	int64_t commands; /* an estimate where they are many: never counted one by one then */
	int64_t in_progress, unknown;
	int64_t stale;         /* of those in progress: their lease has ended */
	int64_t open, overdue; /* items of human work; overdue ones are open, too */
	struct owner_count {
		const char *owner;
		int64_t open, overdue;
	} * owners; /* of open ones; who has most comes first */
	size_t owner_count;
};

/* An index of the user's tables. */
struct index_row {
	const char *table,
	    *columns; /* "payment", "tenant, reference"; an expression as it is written */
	bool unique;  /* refuses a second row; an exclusion constraint does, too */
	bool valid;   /* false: left behind by a failed build; it guards nothing */
	bool partial; /* guards only the rows that its condition selects */
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
	bool exact;                /* the body is JSON already, and kept byte for byte */
	const int64_t *rows;       /* of each statement of a script: changed, or returned */
	size_t row_count;          /* 0: not known */
};

struct sql_in;
struct row_list;
struct event_rules;
struct lane_wish;
struct lane_lease;
struct lane_batch;
struct lane_row;
struct backlog_row;
struct lane_settlement;
struct held_event;
struct hold_row;
struct hold_decision;
struct withdrawal;
struct delivery_row;
struct outbox_filter;
struct outbox_row;
struct archive_span;
struct archive_seal;
struct archive_row;
struct archive_line;
struct restoring;
struct restore_count;
typedef enum ibid_code archive_line_fn(void *user, const struct archive_line *, struct ibid_err *);

/* What a script's emit needs to know about the command it runs for. */
struct work_context {
	struct uuid command_id;
	const char *tenant;
	const char *correlation_id, *causation_id, *traceparent, *tracestate; /* NULL: none */
	const char *const *emits; /* event types that the contract declares */
	size_t emit_count;
	bool makes_events;               /* the contract makes them all itself: the script emits none */
	const struct event_rules *rules; /* for them; outlives whatever runs; NULL: there are none */
	int64_t now_us;
	bool holds_lease; /* the caller wants to finish, or take over, a command IN_PROGRESS */
	bool runs_again;  /* an expired row may give its place to this command */
};

/* May the command of this context take the place of the row that its claim found? */
bool command_gives_way(const struct command_row *row, const struct work_context *context);

/* What a duplicate gets: the words of the decision table (command/decide.c). */
enum verdict {
	VERDICT_RUN,         /* the identity may be run (again) */
	VERDICT_REPLAY,      /* give back the outcome on the row */
	VERDICT_CONFLICT,    /* one key, one fingerprint (I2): refuse, keep evidence */
	VERDICT_IN_PROGRESS, /* somebody has it: answer as the contract says */
	VERDICT_UNKNOWN,     /* nobody knows: tell the state, change nothing */
	VERDICT_EXPIRED,     /* the key may not be used any more: refuse */
	VERDICT_RUN_ANEW,    /* the key is forgotten: run as a new command in the row's place */
};

/* ---- Transactions --------------------------------------------------------------------------- */

struct store {
	const struct store_ops *ops;
	const struct hook *hook; /* set by a test: see hook.h; NULL: none */
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
	struct tx *tx; /* CLAIM_FREE: open. CLAIM_FOUND: open, or NULL where the row is COMPLETED and
	                  does not give way, or IN_PROGRESS and not for this caller. CLAIM_BUSY: NULL */
};

enum { GROUP_MAX = 60 }; /* PostgreSQL keeps 64 subtransactions and locks at hand, not more */

/* One of several commands that share a transaction. */
struct group_member {
	const struct work_context *context;
	const struct script *script;
	const char *const *values;
	struct arena *arena; /* for what comes back */

	/* The new row and its audit entry. Where the answer is declared, they are whole; otherwise
	 * `complete` looks at what the script answered, in `outcome`, and adds that. It is asked, too,
	 * where rows are to be compared, with those in `outcome`. False: it is not a plain success. */
	struct command_row row;
	struct audit_row audit;
	bool answered; /* `outcome` is the declared answer */
	bool compares; /* rows, before the commit */
	bool (*complete)(struct group_member *);
	const struct event_row *events; /* that are declared */
	size_t event_count;

	/* Out. */
	bool done;
	struct claim claim; /* not done: see run_group */
	struct outcome outcome;
	enum ibid_code code; /* of one that ran alone: what stopped it, as of run_script; IBID_OK: it is
	                        to go by the steps */
};

/* What is to be written for a command that is begun, after a look at its row. */
struct plan {
	enum verdict verdict;
	struct command_row row; /* VERDICT_RUN...: IN_PROGRESS, or an outcome already */
	bool has_payload;       /* then this goes with the row: */
	struct payload_row payload;
	struct key_conflict_row evidence; /* VERDICT_CONFLICT */
};

/* `found`: the row that is there; NULL: none. */
typedef enum ibid_code plan_fn(void *user, const struct command_row *found, struct plan *ret,
                               struct ibid_err *err);

/* A command that is begun in a transaction of the caller's. */
struct beginning {
	struct identity identity;
	const char *payload; /* canonical */
	int contract_version;
	const char *client, *actor, *resource; /* NULL: none; likewise: */
	const char *correlation_id, *causation_id, *traceparent, *tracestate;
	plan_fn *plan; /* asked once, where the engine does not decide by itself */
	void *user;
};

struct begun {
	enum verdict verdict;
	struct command_row row; /* VERDICT_RUN...: as it was written. Otherwise as it was found, as far
	                           as its verdict needs it; id all zero: a twin's that can't be seen */
};

/* How it ends, in the same transaction. */
struct finishing {
	const struct command_row *row;      /* as it is to be: COMPLETED, REJECTED or FAILED */
	const struct command_row *previous; /* as begin_adopted left it */
	const struct outcome *outcome;      /* the whole answer, whatever is kept of it */
	bool by_failure;                    /* not COMPLETED: by a failure, not a rejection */
	const struct audit_row *audit;      /* COMPLETED; else NULL */
	const struct event_row *events;
	size_t event_count;
};

enum finding_level { FINDING_OK, FINDING_WARN, FINDING_REFUSE };
typedef void finding_fn(void *user, enum finding_level level, const char *what, const char *advice);

/* A script that is going to run. */
struct script_use {
	const struct script *script;
	enum script_answer {
		SCRIPT_MAY_ANSWER,
		SCRIPT_ANSWERS,       /* one whose last statement gives no row can't succeed */
		SCRIPT_ANSWERS_NEVER, /* its contract declares the answer */
	} answer;
};

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

	/* The index, or the constraint's index, of that name in the user's tables; IBID_NOT_FOUND when
	 * there is none. Where several schemas have one, the one that a script finds first. */
	enum ibid_code (*describe_index)(struct store *, struct arena *, const char *name,
	                                 struct index_row *ret, struct ibid_err *);

	/* Split and check a script: transaction control, session settings, LISTEN and COPY are refused,
	 * as are parameters that are not in `params` (IBID_CONTRACT with file and line). Freed by
	 * free_script. */
	enum ibid_code (*make_script)(struct store *, const char *file, const char *text,
	                              const struct param_spec *params, size_t count,
	                              struct script **ret, struct ibid_err *);
	void (*free_script)(struct store *, struct script *); /* takes NULL */

	/* Prepare every statement of the scripts on this database, as run_script would; nothing is run,
	 * and nothing is left behind. What would keep one from running is a finding that refuses, with
	 * file, line and the engine's own words: syntax, tables, columns, types of parameters, columns
	 * of the answer. What can't be known, because an earlier statement of the script makes what a
	 * later one needs, is a warning. */
	enum ibid_code (*prepare_scripts)(struct store *, const struct script_use *, size_t count,
	                                  finding_fn *, void *user, struct ibid_err *);

	/* ---- Ordinary statements: see run.h ---------------------------------------------------------
	 */

	enum ibid_code (*put)(struct tx *, const struct sql_in *, struct ibid_err *);
	enum ibid_code (*change)(struct store *, const struct sql_in *, int64_t *ret_changed,
	                         struct ibid_err *);
	enum ibid_code (*query)(struct store *, const struct sql_in *, struct row_list *ret,
	                        struct ibid_err *);

	/* IBID_BUSY instead of `code` where a commit of unknown outcome may yet bring what a look did
	 * not find (I7). NULL: never. */
	enum ibid_code (*check_settled)(struct store *, enum ibid_code code, struct ibid_err *);

	/* ---- One command ----------------------------------------------------------------------------
	 */

	/* Open a transaction and claim the identity without waiting for a twin (SQLite: after waiting
	 * for the writer lock). The row's body is read too. Two transactions never both hold
	 * CLAIM_FREE, or CLAIM_FOUND with an open transaction, for one identity. `context` is what emit
	 * in scripts sees; where a row is found, its own id takes the place of context's, unless the
	 * row gives way. A row IN_PROGRESS is told without waiting for any lock (B05), unless the
	 * caller holds its lease. */
	enum ibid_code (*claim)(struct store *, struct arena *, const struct identity *,
	                        const struct work_context *context, struct claim *ret,
	                        struct ibid_err *);

	/* Claim, run and write up to GROUP_MAX commands with different identities, in this order, in
	 * one transaction. Each member hears for itself: done, once the one commit is durable (I10); or
	 * not, and then nothing of it remains and nobody else is touched by it: `claim` is CLAIM_FOUND
	 * with a COMPLETED row, CLAIM_BUSY, or CLAIM_FREE: it must go by the steps (claim and the
	 * verbs below), because it did not succeed here, which may be its neighbours' doing; or, of one
	 * alone, `code` says what stopped it. A code that is returned is that of all who
	 * are not told by their claim: nothing was done, or IBID_UNKNOWN, as for commit. Nobody waits
	 * long for a row that others hold. */
	enum ibid_code (*run_group)(struct store *, struct group_member **, size_t count,
	                            struct ibid_err *);
	bool one_writer; /* there is no order of row locks that members could get wrong */
	size_t (*lanes)(const struct store *); /* groups that it pays to run at the same time, 1 or 2 */

	/* After a commit of unknown outcome, or to wait for a twin: on a new connection to the primary,
	 * wait at most `wait_us` for whoever holds the identity, then look (I7). Gives CLAIM_FREE (no
	 * row), CLAIM_FOUND or CLAIM_BUSY (still held), always with tx NULL. */
	enum ibid_code (*resolve)(struct store *, struct arena *, const struct identity *,
	                          int64_t wait_us, struct claim *ret, struct ibid_err *);

	/* Run a script in the transaction. `values` are in the order of make_script's params; NULL is
	 * SQL NULL. IBID_OK: the last row of the last statement is in `ret`, and the rows of
	 * each statement. IBID_REJECTED,
	 * IBID_DUPLICATE, IBID_FAILED and IBID_RETRY: the transaction can only be rolled back; `ret`
	 * says why. Events that the script emits are appended in the transaction; an event whose
	 * version is not the next is IBID_REJECTED with reason VERSION_CONFLICT, one that the contract
	 * does not declare, or that violates its own contract (`rules`), IBID_FAILED. */
	enum ibid_code (*run_script)(struct tx *, struct arena *, const struct script *,
	                             const char *const *values, struct outcome *ret, struct ibid_err *);

	/* The same for a script whose answer its contract declares: what its last statement returns is
	 * not read. */
	enum ibid_code (*run_statements)(struct tx *, struct arena *, const struct script *,
	                                 const char *const *values, struct outcome *ret,
	                                 struct ibid_err *);

	/* The same for a script that may only look: one that changes a row or emits an event is
	 * IBID_FAILED. */
	enum ibid_code (*run_query)(struct tx *, struct arena *, const struct script *,
	                            const char *const *values, struct outcome *ret, struct ibid_err *);

	/* Hold what `row` names, until the transaction ends: a second transaction that asks for it
	 * waits here, and what it reads afterwards includes everything that the first one committed.
	 * IBID_BUSY: held too long. NULL where two transactions that claimed are never open at once. */
	enum ibid_code (*lock_row)(struct tx *, const char *row, struct ibid_err *);

	/* Append an event that its rule was applied to: move the aggregate's head from version - 1 to
	 * version, or by one, and insert the row. Reported here or by commit: another version than the
	 * next is IBID_REJECTED with reason VERSION_CONFLICT and status 409; a key that was used before
	 * IBID_REJECTED with EVENT_KEY_USED. */
	enum ibid_code (*put_event)(struct tx *, const struct event_row *, struct ibid_err *);

	/* Write the command's row, complete. `previous` is the row that claim found (FAILED, or
	 * REJECTED and evaluated again; or expired, and `row` has another id), which is replaced by
	 * compare-and-set and takes its body with it, or NULL for a new one. The fingerprint of an
	 * unbound row that another payload takes is kept as evidence (I2). IBID_RETRY when another
	 * row is there: the primary key arbitrates (I2). A row IN_PROGRESS, with a lease, stages the
	 * command; the row that replaces it is compared by its token, too (I6), and is itself
	 * IN_PROGRESS only where it takes over a lease that has ended. */
	enum ibid_code (*put_command)(struct tx *, const struct command_row *,
	                              const struct command_row *previous, struct ibid_err *);

	/* Open a transaction that is no command's, for the six verbs below, resolve_exception and
	 * commit: an action by a person. */
	enum ibid_code (*begin_action)(struct store *, struct tx **ret, struct ibid_err *);

	/* The database handle for C callbacks: sqlite3 * or PGconn *, ready for the caller's
	 * statements. While it is lent (until lend is called with false, before the next verb) the
	 * callback can't end the transaction on SQLite; on PostgreSQL commit notices that it did
	 * (IBID_MISUSE). */
	void *(*lend)(struct tx *, bool lent);

	/* After lend, for a callback that did not succeed: IBID_MISUSE when it ended the transaction,
	 * so that rolling back may undo nothing. IBID_OK: it did not, or its transaction has failed,
	 * which keeps the engine from telling. NULL where the engine keeps callbacks from ending it. */
	enum ibid_code (*check_tx)(struct tx *, struct ibid_err *);

	/* Make it durable. Takes the transaction, whatever comes back. Errors of put_... verbs may be
	 * reported here. IBID_UNKNOWN: the commit was sent and did not report success (I7); any other
	 * code: rolled back, with `ret` as run_script fills it (IBID_DUPLICATE: a deferred constraint).
	 */
	enum ibid_code (*commit)(struct tx **, struct arena *, struct outcome *ret, struct ibid_err *);
	void (*rollback)(struct tx **); /* no-op on a NULL transaction */

	/* ---- In a transaction of the caller's -------------------------------------------------------
	 */

	/* Use the transaction that is open on the caller's connection (sqlite3 *, PGconn *). Only these
	 * four verbs take it, and none of them ends it, or replaces a hook or a setting of the
	 * connection: what a verb writes stands behind a savepoint of its own, so that a verb that
	 * fails has changed nothing; unless SQLite rolled everything back, which is IBID_RETRY, as is
	 * whatever only a new transaction can mend. IBID_MISUSE: no transaction is open, it has failed,
	 * the connection is busy, or set up so that an unfinished command could commit. */
	enum ibid_code (*adopt)(struct store *, void *connection, struct tx **ret, struct ibid_err *);

	/* Claim the identity and, where it is to be run, write its row IN_PROGRESS together with a note
	 * that makes the database refuse the commit until finish_adopted takes it away. PostgreSQL
	 * decides by itself, by the kept contract; a twin that runs now is VERDICT_IN_PROGRESS there,
	 * and waited for on SQLite, as long as the connection's busy handler waits. */
	enum ibid_code (*begin_adopted)(struct tx *, struct arena *, const struct beginning *,
	                                struct begun *ret, struct ibid_err *);

	/* Write what the command ends in. IBID_MISUSE: it is not open in this transaction. IBID_FAILED:
	 * an event was refused, as put_event says: nothing is written, and it is still open. */
	enum ibid_code (*finish_adopted)(struct tx *, const struct finishing *, struct ibid_err *);

	void (*release_adopted)(struct tx **); /* forgets it; no-op on NULL */

	/* ---- Leases: each is one transaction of its own ---------------------------------------------
	 */

	/* The lease of a command IN_PROGRESS now ends `lease_us` from now, by the store's clock, also
	 * where it had ended and nobody took it. IBID_FENCED: it is not IN_PROGRESS under this token
	 * (I6). */
	enum ibid_code (*renew_lease)(struct store *, const char *tenant, const struct uuid *id,
	                              int64_t token, int64_t lease_us, struct ibid_err *);

	/* ---- Outbox: each is one transaction of its own; see outbox.h
	 * --------------------------------
	 */

	/* Say that this relay is there, and lease lanes that are free or whose lease has ended, up to
	 * its share: as many as there are lanes for each relay that said so lately. Lanes that it holds
	 * by this name are not among them, but count. `*ret_share`: who holds more gives some up. Who
	 * says that it goes is no longer counted, once it has given its lanes up. */
	enum ibid_code (*lease_lanes)(struct store *, struct arena *, const struct lane_wish *,
	                              struct lane_lease **ret, size_t *ret_count, size_t *ret_share,
	                              struct ibid_err *);

	/* What was committed in the lane since the cursor (the lease's own is only where it stood) and
	 * has a topic: at most `limit` events and those of the transaction that the last one is of.
	 * Cheap however much was delivered before, and whoever's transactions are open. `doubtful`:
	 * leave out what has evidence for this destination, or was passed by a person's decision.
	 * Whoever leased the lane reads so until there is no more: the cursor is older than the
	 * evidence, or of another server, from which the events were restored. An event that is
	 * CANCELLED and not passed is among them, and `withdrawn` says so whenever one may be:
	 * list_held, asked afterwards, names it. */
	enum ibid_code (*read_lane)(struct store *, struct arena *, const struct lane_lease *,
	                            const char *cursor, size_t limit, bool doubtful,
	                            struct lane_batch *ret, struct ibid_err *);

	/* All that stands in the lane's hold, by aggregate and version, but what is passed. */
	enum ibid_code (*list_held)(struct store *, struct arena *, const struct lane_lease *,
	                            struct held_event **ret, size_t *ret_count, struct ibid_err *);

	/* All of it or nothing. IBID_FENCED: the lane is another's by now, or given up; nothing was
	 * written. After IBID_UNKNOWN it may be sent again: evidence is kept and counted once.
	 *
	 * What a person decided meanwhile stands: a hold is written only where the event is held as it
	 * `was` read, or not at all where it is new; and an item about a delivery opens only with an
	 * event that is PARKED then. A new one that was CANCELLED before it was read is passed, unless
	 * it is early. One that arrived leaves the hold, unless it is SKIPPED or CANCELLED there. */
	enum ibid_code (*settle_lane)(struct store *, const struct lane_settlement *,
	                              struct ibid_err *);

	/* Bring the counters of what was written for each destination, and of what relays have passed,
	 * forward by about `limit` events of each lane. Any number of processes may do so at once: each
	 * event is counted once. Costs what came since, however much there is. `*ret_more`: there is
	 * more to count. */
	enum ibid_code (*count_outbox)(struct store *, size_t limit, bool *ret_more, struct ibid_err *);

	/* How the outbox stands toward each destination that an event names or that has lanes, by name.
	 * Writes nothing; costs what nobody has counted yet. Exact in its own snapshot where all
	 * that arrived behind a lane's cursor is among the first BACKLOG_NEAR events there; otherwise
	 * what is beyond them counts as waiting until the cursor is kept, which is within a second. */
	enum ibid_code (*measure_outbox)(struct store *, struct arena *, struct backlog_row **ret,
	                                 size_t *ret_count, struct ibid_err *);

	/* store_list_outbox, where that is not of one event or of what is held. */
	enum ibid_code (*list_outbox)(struct store *, struct arena *, const struct outbox_filter *,
	                              struct outbox_row **ret, size_t *ret_count, struct ibid_err *);

	/* ---- Evidence and looking -------------------------------------------------------------------
	 */

	/* Add to what is kept of duplicates, all of it or nothing. After IBID_UNKNOWN or
	 * IBID_UNAVAILABLE it may be kept all the same: whoever tries again may count twice. */
	enum ibid_code (*put_duplicates)(struct store *, const struct duplicate_row *, size_t count,
	                                 const struct duplicate_seen_row *, size_t seen_count,
	                                 struct ibid_err *);

	/* ---- Retention ------------------------------------------------------------------------------
	 */

	/* One bounded step from the cursor on, in a transaction of its own; `ret` is added to. Commands
	 * whose key has expired lose body, payload and text and still answer a duplicate; after the
	 * audit period, too, they are deleted with their evidence and duplicates (SQLite: and their
	 * audit entries). What has no outcome is never touched. Safe beside commands and other
	 * retentions: a row that is held is left to the next run. */
	enum ibid_code (*retain_commands)(struct store *, struct arena *, const struct retention *,
	                                  struct retention_cursor *, struct retention_count *ret,
	                                  struct ibid_err *);

	/* One bounded step on what is kept by the month (PostgreSQL: audit entries, empty answers and
	 * payloads; partitions to come are made; SQLite: nothing). `*ret_more`: there may be more to
	 * do. PostgreSQL keeps all audit entries while an operation has no period. */
	enum ibid_code (*retain_history)(struct store *, const struct retention *,
	                                 struct retention_count *ret, bool *ret_more,
	                                 struct ibid_err *);

	/* ---- Archive: see archive.h -----------------------------------------------------------------
	 */

	/* The oldest span behind `after` (NULL: the first one) of events that were created before
	 * `before_us`, and what keeps events of it from going. `ret->part` is "" behind the last one.
	 */
	enum ibid_code (*next_span)(struct store *, struct arena *, int64_t before_us, int64_t now_us,
	                            const struct archive_span *after, struct archive_span *ret,
	                            struct ibid_err *);

	/* All that may go of a span, line by line, in an order that is always the same, and its seal.
	 * Few lines are in memory at a time. What the function returns ends it. */
	enum ibid_code (*read_span)(struct store *, const struct archive_span *, archive_line_fn *,
	                            void *user, struct archive_seal *ret, struct ibid_err *);

	/* Drop what was read, and keep the record of its file (NULL: there is none), in one
	 * transaction. IBID_RETRY: something of it has changed since, and nothing was done. */
	enum ibid_code (*drop_span)(struct store *, const struct archive_span *,
	                            const struct archive_seal *, const struct archive_row *,
	                            struct ibid_err *);

	/* Put events of an archive back, with evidence and holds, all of them or none. No relay sends
	 * them again; heads of aggregates stay as they are. IBID_DUPLICATE: the store has another event
	 * in the place of one. IBID_INVALID: they are of another kind of store. IBID_BUSY: of another
	 * SQLite file, and a relay is running that would take them for new ones. */
	enum ibid_code (*restore_events)(struct store *, const struct restoring *,
	                                 struct restore_count *ret, struct ibid_err *);

	/* ---- Erasure --------------------------------------------------------------------------------
	 */

	/* One bounded step of an erasure, in a transaction of its own with its record (I1). Commands
	 * with an outcome lose payload, body and text, the payloads of their events become
	 * {"erased":true}, and the names of who sent duplicates become "erased"; a COMPLETED command
	 * that lost its body has the reason ERASED. Where an actor is erased, so are client and actor
	 * of the command and its audit entry, and the actor among the duplicates of other commands.
	 * Identity, state, fingerprint, ids and times stay. Where nothing is left to remove there is no
	 * record. Safe beside commands, retention and other erasures. */
	enum ibid_code (*erase_commands)(struct store *, const struct erasure *,
	                                 struct erasure_progress *, struct ibid_err *);

	/* ---- Tokens: each is one transaction of its own ---------------------------------------------
	 */

	/* How the ledger stands, by the store's clock. Cheap however many commands there are, so that
	 * it may be asked every few seconds; its numbers need not be of one moment. */
	enum ibid_code (*measure)(struct store *, struct arena *, struct measurement *ret,
	                          struct ibid_err *);

	/* Could a command commit now, as far as that shows without one? It is asked every second.
	 * IBID_GONE: not until the store is opened anew. NULL: any look at the store says as much. */
	enum ibid_code (*ready)(struct store *, struct ibid_err *);

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
struct library store_sqlite_library(void);
void store_close(struct store *store); /* takes NULL */

/* "sqlite:pay.db" or "postgres://user:***@host/db": for messages. */
const char *store_url_redacted(struct arena *arena, const char *url);

#endif
