/* SPDX-License-Identifier: Apache-2.0 */
/* postgres.h -- the store on PostgreSQL: what its files share.
 *
 * (P1) A connection is in pipeline mode unless it is lent or runs a schema file, and nothing is
 *      pending on it between two trips.
 * (P2) A connection in the pool is idle: no transaction, nothing unread. What can't be brought to
 *      that state is closed, and so is one whose session a script may have changed.
 * (P3) A COMMIT is sent only by commit(), last in its trip: whatever fails before keeps it from
 *      happening, and whatever hides its result makes the outcome unknown (I7). */
#ifndef STORE_POSTGRES_H
#define STORE_POSTGRES_H

#include "base/str.h"
#include "store/script.h"
#include "store/sql_ids.h"
#include "store/store.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>

/* ---- Statements: statement.c ---------------------------------------------------------------- */

enum pg_statement_name {
#define PG_STATEMENT_ENUM(symbol, ...) STATEMENT_##symbol,
	SQL_STATEMENTS(PG_STATEMENT_ENUM) /* first: the ids are those of enum sql_id */
	PG_STATEMENTS(PG_STATEMENT_ENUM)
#undef PG_STATEMENT_ENUM
	    STATEMENT_COUNT
};

enum { PG_NAME_SIZE = sizeof "ibid_0123456789abcdef" };

struct pg_statement {
	const char *sql;
	const Oid *types; /* NULL: the server knows them from the text */
	unsigned id;      /* unique in the process: where connections mark that they have it */
	int param_count;
	char name[PG_NAME_SIZE]; /* on the server; those of the .sql files have theirs elsewhere */
	const char *file;        /* "command_get"; NULL: of a script */
};

extern const struct pg_statement pg_statements[STATEMENT_COUNT];

/* A digest of its text and types: behind a proxy that shares servers, and their statements, among
 * processes, a name still means one text. */
const char *pg_statement_name(const struct pg_statement *statement);

/* Give a new statement its name and id: those of an earlier one that is the same. False without
 * memory. */
IBID_CHECK bool pg_statement_register(struct pg_statement *statement);

/* ---- Connections: connection.c -------------------------------------------------------------- */

struct pg_store;

struct pg_conn {
	PGconn *link;
	bool unnamed; /* use no prepared statements: a proxy may change the server under us */
	bool broken;  /* may only be closed */
	bool spoiled; /* a script may have left something in the session: not for the pool */
	bool rested;  /* was in the pool: it may have gone stale there */
	unsigned char *prepared; /* by statement id: 1 when the server has it */
	size_t prepared_room;
	PGresult *refused;              /* by the server, at the end of the last trip: see pg_trip */
	struct pg_conn *next;           /* in the pool */
	const struct hook *const *hook; /* the store's */
};

/* Parameters of our own in the URL. */
struct pg_own {
	bool unnamed; /* `statements=unnamed`, and not `statements=named` */
	size_t lanes; /* `lanes=1` or `lanes=2`; 0: as the machine is */
};

/* Take them out of it. */
IBID_CHECK enum ibid_code pg_url_read(const char *url, char **ret_url, struct pg_own *ret,
                                      struct ibid_err *err);
IBID_CHECK enum ibid_code pg_connect(struct pg_store *store, int timeout_seconds,
                                     struct pg_conn **ret, struct ibid_err *err);
void pg_disconnect(struct pg_conn *conn); /* takes NULL */

/* ---- Trips: trip.c -------------------------------------------------------------------------- */

struct pg_call {
	const struct pg_statement *statement;
	const char *const *values; /* text; NULL is SQL NULL */
	const int *lengths;        /* of values in binary; NULL: they are text */
	PGresult *result;
	bool raises; /* a hook fails it: a statement that raises is sent in its place */
};
#define PG_CALL(symbol, ...)                                                                       \
	((struct pg_call){.statement = &pg_statements[STATEMENT_##symbol], __VA_ARGS__})

struct pg_trip {
	size_t queued; /* calls handed to libpq; those after them were certainly not sent */
	size_t done;   /* calls that succeeded; when not all did, calls[done] is the one that failed */
};

/* Send all calls and read all results: one round trip. A call that fails keeps those after it from
 * running. Calls without BEGIN are one transaction, which the end of the trip commits. True when
 * all that succeeded. Results are the caller's to release. */
IBID_CHECK bool pg_trip(struct pg_conn *conn, struct pg_call *calls, size_t count,
                        struct pg_trip *ret);
void pg_release(struct pg_call *calls, size_t count); /* the results; may be repeated */

/* What failed in a trip that did: the error of a call, or of the commit at its end, until the next
 * trip; NULL with conn->broken. */
const PGresult *pg_trip_error(const struct pg_conn *conn, const struct pg_call *calls, size_t count,
                              const struct pg_trip *trip);

/* Many statements in one text, by the simple protocol. NULL without memory, or where a hook lost
 * the connection. `name` is for the hook. */
PGresult *pg_exec(struct pg_conn *conn, const char *name, const char *text);

/* Does the hook have the statement fail here? After HOOK_BEFORE the connection is lost then. */
bool pg_hook_fails(struct pg_conn *conn, enum hook_kind kind, const char *name);

/* ---- Pool: pool.c --------------------------------------------------------------------------- */

struct pg_pool {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct pg_conn *idle; /* last in, first out: the warmest */
	unsigned open, most;
};

struct pg_store {
	struct store base;
	struct env *env;
	struct log log;
	char *url; /* holds the password: never shown */
	struct pg_own own;
	unsigned busy_ms;
	bool opened;          /* the database was there once */
	_Atomic bool settles; /* there are constraints that a group must not put off: see group.c */
	_Atomic int looks;    /* so many groups look for duplicates before they run: see group.c */
	struct pg_pool pool;
	_Atomic int64_t place; /* see adopt_place.sql; 0: not asked for yet */
};

IBID_CHECK enum ibid_code pg_pool_init(struct pg_store *store, unsigned most, struct ibid_err *err);
void pg_pool_release(struct pg_store *store);

/* A connection from the pool; with `fresh`, one opened now. IBID_BUSY when none came free in time.
 */
IBID_CHECK enum ibid_code pg_pool_take(struct pg_store *store, bool fresh, struct pg_conn **ret,
                                       struct ibid_err *err);
void pg_pool_give(struct pg_store *store, struct pg_conn *conn); /* takes NULL; P2 */

/* The same for a trip that can't be repeated: not one that the server has closed meanwhile. */
IBID_CHECK enum ibid_code pg_pool_take_alive(struct pg_store *store, struct pg_conn **ret,
                                             struct ibid_err *err);

/* Take a connection and make its first trip. A pooled one may have died since it was last used:
 * then once more on a fresh one, so the calls must be harmless when repeated. On success `*ret` is
 * the caller's to give back; on failure it was given back. */
IBID_CHECK enum ibid_code pg_pool_trip(struct pg_store *store, struct pg_call *calls, size_t count,
                                       struct pg_conn **ret, struct ibid_err *err);

/* The same for a verb that is one trip: the connection is given back, the results stay. */
IBID_CHECK enum ibid_code pg_pool_query(struct pg_store *store, struct pg_call *calls, size_t count,
                                        struct ibid_err *err);

/* ---- Errors: error.c ------------------------------------------------------------------------ */

/* What the server's error (or a broken connection: NULL) means for one of our own statements. */
enum ibid_code pg_error(struct pg_conn *conn, const PGresult *result, struct ibid_err *err);

/* The same where statements of a handler run: what is not ours to know is IBID_FAILED, and `ret`
 * says why as store.h promises. */
enum ibid_code pg_error_outcome(struct pg_conn *conn, const PGresult *result, struct arena *arena,
                                struct outcome *ret, struct ibid_err *err);

/* The connection is gone, or will be: FATAL, or of class 08 or 57P. */
bool pg_error_is_fatal(const struct pg_conn *conn, const PGresult *result);

/* Lines before the place that the error points at in the statement's text: 0 for the first line. */
int pg_error_line(const PGresult *result, const char *text);

/* The code of a SQLSTATE, or IBID_OK when it is not in the table. */
enum ibid_code pg_sqlstate_code(const char *sqlstate);

/* ---- Values: value.c ------------------------------------------------------------------------ */

/* To text parameters. NULL without memory: check arena->failed once. */
const char *pg_int(struct arena *arena, int64_t value);
const char *pg_uuid(struct arena *arena, const struct uuid *uuid);
const char *pg_hash(struct arena *arena, const struct sha256 *hash);
const char *pg_time(struct arena *arena, int64_t us);
const char *pg_time_or_null(struct arena *arena, int64_t us); /* 0: NULL */

/* Both in one text, as ibid_internal.traceparent_in reads it: a command passes them on at once. "":
 * none. */
const char *pg_trace(struct arena *arena, const char *traceparent, const char *tracestate);

/* From cells. */
const char *pg_cell(const PGresult *result, int row, int column); /* NULL: SQL NULL */
const char *pg_cell_text(struct arena *arena, const PGresult *result, int row, int column);
int64_t pg_cell_int(const PGresult *result, int row, int column); /* SQL NULL: 0 */
bool pg_cell_bool(const PGresult *result, int row, int column);
struct uuid pg_cell_uuid(const PGresult *result, int row, int column); /* SQL NULL: all zero */
struct sha256 pg_cell_hash(const PGresult *result, int row, int column);

/* ---- Transactions: transaction.c ------------------------------------------------------------ */

/* Calls that travel before all others in the trip of commit; their results are whose they are. */
struct pg_ahead {
	struct pg_call *calls;
	size_t count;
	size_t done; /* out: so many succeeded */
};

/* What put_... verbs ask for waits in the queue and travels with the next trip: that of commit, or
 * of a script. */
struct pg_tx {
	struct tx base;
	struct pg_store *store;
	struct pg_conn *conn;
	struct arena arena; /* the queue and its values */
	char command_id[UUID_TEXT_SIZE];
	struct pg_ahead *ahead; /* NULL: none */
	struct pg_call *queue;
	size_t queue_count, queue_room;
	bool lent;
	/* Once a verb has failed, commit says the same and commits nothing. */
	struct ibid_err doom; /* code IBID_OK: not doomed */
	struct outcome doom_outcome;
};

static inline struct pg_store *pg_store_of(struct store *store)
{
	return (struct pg_store *)store;
}
static inline struct pg_tx *pg_tx_of(struct tx *tx)
{
	return (struct pg_tx *)tx;
}

/* Takes the connection, also when it fails. */
IBID_CHECK enum ibid_code pg_tx_new(struct pg_store *store, struct pg_conn *conn,
                                    const struct uuid *command_id, struct pg_tx **ret,
                                    struct ibid_err *err);
/* Remember what failed, in the transaction's own memory; returns the code. `outcome` may be NULL.
 */
enum ibid_code pg_tx_doom(struct pg_tx *tx, const struct ibid_err *err,
                          const struct outcome *outcome);
IBID_CHECK enum ibid_code pg_tx_queue(struct pg_tx *tx, struct pg_call call, struct ibid_err *err);
void *pg_lend(struct tx *tx, bool lent);
enum ibid_code pg_check_tx(struct tx *tx, struct ibid_err *err);
enum ibid_code pg_lock_row(struct tx *tx, const char *row, struct ibid_err *err);
enum ibid_code pg_commit(struct tx **tx, struct arena *arena, struct outcome *ret,
                         struct ibid_err *err);
void pg_rollback(struct tx **tx);

/* ---- Scripts: handler.c ---------------------------------------------------------------------- */

struct script {
	struct arena arena;
	const char *file;
	const char **names; /* of all parameters */
	struct script_statements parts;
	struct pg_statement *statements; /* one per part */
	bool sets, leaves_state;         /* maybe: see script.h */
	/* It asked for the running command where a group had told it none: it is told from then on. */
	atomic_bool *asks;
};

/* How many rows the statements of a script, which are these calls, changed or returned. */
IBID_CHECK enum ibid_code pg_read_rows(struct arena *arena, const struct pg_call *calls,
                                       size_t count, struct outcome *ret, struct ibid_err *err);

/* What a part's parameters are, from the values of the whole script; NULL without memory. */
const char **pg_script_values(struct arena *arena, const struct script_statement *part,
                              const char *const *values);

/* Are the columns those of an answer? IBID_FAILED. */
enum ibid_code pg_check_answer(const PGresult *result, struct ibid_err *err);

/* The answer in the last row. */
enum ibid_code pg_read_answer(struct arena *arena, const PGresult *result, struct outcome *ret,
                              struct ibid_err *err);

/* Say where in the file a part failed; `err` and `ret` say with what. */
enum ibid_code pg_script_failed(struct arena *arena, const struct script *script, size_t part,
                                const PGresult *result, struct outcome *ret, struct ibid_err *err);

/* ---- Verbs ---------------------------------------------------------------------------------- */

/* claim.c */
int64_t pg_lock_key(const struct identity *identity);
/* What emit is told of the event types that a command declares: "A:1,B", an A by version 1 of its
 * contract and a B without one. NULL without memory. */
const char *pg_emits(struct arena *arena, const struct work_context *context);
enum ibid_code pg_claim(struct store *store, struct arena *arena, const struct identity *identity,
                        const struct work_context *context, struct claim *ret,
                        struct ibid_err *err);
enum ibid_code pg_resolve(struct store *store, struct arena *arena, const struct identity *identity,
                          int64_t wait_us, struct claim *ret, struct ibid_err *err);

/* action.c */
enum ibid_code pg_begin_action(struct store *store, struct tx **ret, struct ibid_err *err);

/* put.c */
enum ibid_code pg_put_event(struct tx *tx, const struct event_row *event, struct ibid_err *err);
enum ibid_code pg_put_command(struct tx *tx, const struct command_row *row,
                              const struct command_row *previous, struct ibid_err *err);
/* The answer's body, for the row that was queued. */
enum ibid_code pg_put_body(struct pg_tx *tx, const struct command_row *row, struct ibid_err *err);
enum ibid_code pg_put_duplicates(struct store *, const struct duplicate_row *, size_t count,
                                 const struct duplicate_seen_row *, size_t seen_count,
                                 struct ibid_err *);
enum ibid_code pg_retain_commands(struct store *, struct arena *, const struct retention *,
                                  struct retention_cursor *, struct retention_count *ret,
                                  struct ibid_err *);
enum ibid_code pg_next_span(struct store *, struct arena *, int64_t before_us, int64_t now_us,
                            const struct archive_span *after, struct archive_span *ret,
                            struct ibid_err *);
enum ibid_code pg_read_span(struct store *base, const struct archive_span *span,
                            archive_line_fn *fn, void *user, struct archive_seal *ret,
                            struct ibid_err *err);
enum ibid_code pg_drop_span(struct store *, const struct archive_span *,
                            const struct archive_seal *, const struct archive_row *,
                            struct ibid_err *);
enum ibid_code pg_restore_events(struct store *, const struct restoring *,
                                 struct restore_count *ret, struct ibid_err *);
enum ibid_code pg_retain_history(struct store *, const struct retention *,
                                 struct retention_count *ret, bool *ret_more, struct ibid_err *);
/* erase.c */
enum ibid_code pg_erase_commands(struct store *, const struct erasure *, struct erasure_progress *,
                                 struct ibid_err *);

/* handler.c */
enum ibid_code pg_prepare_scripts(struct store *, const struct script_use *, size_t count,
                                  finding_fn *, void *user, struct ibid_err *);
enum ibid_code pg_make_script(struct store *store, const char *file, const char *text,
                              const struct param_spec *params, size_t count, struct script **ret,
                              struct ibid_err *err);
void pg_free_script(struct store *store, struct script *script);
enum ibid_code pg_run_query(struct tx *tx, struct arena *arena, const struct script *script,
                            const char *const *values, struct outcome *ret, struct ibid_err *err);
enum ibid_code pg_run_statements(struct tx *tx, struct arena *arena, const struct script *script,
                                 const char *const *values, struct outcome *ret,
                                 struct ibid_err *err);
enum ibid_code pg_run_script(struct tx *tx, struct arena *arena, const struct script *script,
                             const char *const *values, struct outcome *ret, struct ibid_err *err);

/* group_events.c: what all members tell, as the parameters of group_events. False without memory.
 */
IBID_CHECK bool pg_group_events(struct arena *arena, struct group_member *const *members,
                                size_t count, struct pg_call *ret);

/* group.c */
size_t pg_lanes(const struct store *store);
enum ibid_code pg_run_group(struct store *store, struct group_member **members, size_t count,
                            struct ibid_err *err);

/* outbox.c */
enum ibid_code pg_lease_lanes(struct store *, struct arena *, const struct lane_wish *,
                              struct lane_lease **ret, size_t *ret_count, size_t *ret_share,
                              struct ibid_err *);
enum ibid_code pg_read_lane(struct store *, struct arena *, const struct lane_lease *,
                            const char *cursor, size_t limit, bool doubtful, struct lane_batch *ret,
                            struct ibid_err *);
enum ibid_code pg_list_held(struct store *, struct arena *, const struct lane_lease *,
                            struct held_event **ret, size_t *ret_count, struct ibid_err *);
enum ibid_code pg_settle_lane(struct store *, const struct lane_settlement *, struct ibid_err *);

/* outbox_count.c */
enum ibid_code pg_count_outbox(struct store *, size_t limit, bool *ret_more, struct ibid_err *);
enum ibid_code pg_list_outbox(struct store *, struct arena *, const struct outbox_filter *,
                              struct outbox_row **ret, size_t *ret_count, struct ibid_err *);
enum ibid_code pg_measure_outbox(struct store *, struct arena *, struct backlog_row **ret,
                                 size_t *ret_count, struct ibid_err *);

/* ordinary.c */
/* An ordinary statement as a call of a trip; without memory its values are NULL. */
struct pg_call pg_sql_call(struct arena *arena, const struct sql_in *in);
/* One row, and all rows, of any result, by the names of its columns. Check arena->failed. */
void pg_read_row(PGresult *result, int row, const struct row_shape *shape, struct arena *arena,
                 void *ret);
void pg_sql_rows(PGresult *result, struct row_list *ret);
/* One of our own statements. */
IBID_CHECK enum ibid_code pg_list(struct store *store, struct pg_call call, struct row_list *ret,
                                  struct ibid_err *err);
enum ibid_code pg_put(struct tx *, const struct sql_in *, struct ibid_err *);
enum ibid_code pg_change(struct store *, const struct sql_in *, int64_t *ret_changed,
                         struct ibid_err *);
enum ibid_code pg_query(struct store *, const struct sql_in *, struct row_list *ret,
                        struct ibid_err *);
/* IBID_SCHEMA: it is in a state of a newer schema. */
IBID_CHECK enum ibid_code pg_read_command(struct arena *arena, PGresult *result, int row,
                                          struct command_row *ret, struct ibid_err *err);

/* adopt.c */
enum ibid_code pg_adopt(struct store *store, void *connection, struct tx **ret,
                        struct ibid_err *err);
enum ibid_code pg_begin_adopted(struct tx *tx, struct arena *arena,
                                const struct beginning *beginning, struct begun *ret,
                                struct ibid_err *err);
enum ibid_code pg_finish_adopted(struct tx *tx, const struct finishing *ending,
                                 struct ibid_err *err);
void pg_release_adopted(struct tx **tx);

/* stage.c */
enum ibid_code pg_renew_lease(struct store *store, const char *tenant, const struct uuid *id,
                              int64_t token, int64_t lease_us, struct ibid_err *err);

/* schema.c */
enum ibid_code pg_migrate(struct store *store, int *ret_from, int *ret_to, struct ibid_err *err);
enum ibid_code pg_check_schema(struct store *store, int *ret_version, struct ibid_err *err);
enum ibid_code pg_apply_schema(struct store *store, const struct schema_file *file,
                               enum schema_state *ret, struct ibid_err *err);
enum ibid_code pg_check_decimal_column(struct store *store, const char *name, struct ibid_err *err);
enum ibid_code pg_describe_index(struct store *store, struct arena *arena, const char *name,
                                 struct index_row *ret, struct ibid_err *err);

/* measure.c */
enum ibid_code pg_measure(struct store *store, struct arena *arena, struct measurement *ret,
                          struct ibid_err *err);

/* doctor.c */
enum ibid_code pg_doctor(struct store *store, finding_fn *fn, void *user, struct ibid_err *err);

#endif
