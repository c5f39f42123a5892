/* SPDX-License-Identifier: Apache-2.0 */
/* lite.h -- the store on one SQLite file: one writer, a few readers, one checkpointer.
 *
 * SQLite has one writer per file. Here a process has one writing connection behind a gate, so that
 * threads wait in order and a twin can be seen; between processes the file's lock arbitrates.
 *
 * (L1) The writer's connection is touched only by whoever is inside its gate.
 * (L2) A commit of unknown outcome leaves the writer stale: its connection is closed and opened
 * again before anybody uses it (I7). (L3) A transaction that failed is doomed: it can only be
 * rolled back. */
#ifndef STORE_SQLITE_LITE_H
#define STORE_SQLITE_LITE_H

#include "store/sqlite/conn.h"
#include "store/sqlite/gate.h"
#include "store/sqlite/run.h"
#include "store/store.h"

#include <sys/types.h>

enum { LITE_READERS_DEFAULT = 4, LITE_BUSY_MS_DEFAULT = 5000 };

/* ---- The pool of readers: pool.c ------------------------------------------------------------ */

struct lite_pool {
	pthread_mutex_t lock;
	pthread_cond_t freed;
	struct lite_conn **idle;
	size_t idle_count, open_count, cap;
};

/* ---- The file itself: file_gone.c ------------------------------------------------------------ */

enum { LITE_FILES = 3 }; /* the database, its WAL, the memory that processes share */

struct lite_files {
	struct lite_file {
		char *name; /* NULL: it is not watched */
		dev_t device;
		ino_t inode;
	} opened[LITE_FILES];
	_Atomic(const char *) gone; /* what happened; NULL: nothing that was noticed */
};

/* ---- The store ------------------------------------------------------------------------------ */

/* The thread that moves the WAL into the file, from the first time that it is due. */
struct lite_mover {
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t woken;
	pthread_t thread;
	bool runs, wanted, ends;
};

struct lite_store {
	struct store base;
	char *path;
	struct lite_files files;
	unsigned busy_ms;
	struct env *env;
	struct log log;
	struct lite_pool pool;

	struct gate gate;         /* guards the next two (L1) */
	struct lite_conn *writer; /* NULL: to be opened (L2) */
	_Atomic bool stale;       /* a commit of unknown outcome was not looked at yet */

	pthread_mutex_t running_lock;
	const struct identity *running; /* the command in the gate; NULL: none, or not a command */

	pthread_mutex_t checkpoint_lock; /* guards the next two */
	struct lite_conn *checkpointer;
	bool holds; /* the checkpointer keeps the WAL until the process ends */
	struct lite_mover mover;

	_Atomic int wal_pages;    /* after the last commit of this process */
	_Atomic int moved_at;     /* pages of the WAL when it was last moved; 0: it began anew since */
	_Atomic bool full;        /* a write found no room, and none has succeeded since */
	_Atomic bool unsynced;    /* what was moved may not be in the file: the WAL is kept */
	_Atomic uint64_t scripts; /* made so far: their ids */
};

struct lite_tx {
	struct tx base;
	struct lite_store *store;
	struct lite_conn *conn;
	struct arena arena;
	struct identity identity;
	struct work_context context;
	int ordinal;             /* of the last event */
	struct {                 /* L3 */
		enum ibid_code code; /* IBID_OK: not doomed */
		int status;
		const char *reason, *text, *unique; /* in the arena */
	} doom;
};

static inline struct lite_store *lite_of(struct store *store)
{
	return (struct lite_store *)store;
}
static inline struct lite_tx *lite_tx_of(struct tx *tx)
{
	return (struct lite_tx *)tx;
}

/* Once, when the checkpointer is open. `wal`: it has read in WAL mode, so the other files are there
 * and stay while it is open. */
IBID_CHECK enum ibid_code lite_file_remember(struct lite_store *store, bool wal,
                                             struct ibid_err *err);
void lite_file_release(struct lite_store *store);

/* IBID_GONE, for good, when the path leads to another file or none. One system call. */
IBID_CHECK enum ibid_code lite_file_check(struct lite_store *store, struct ibid_err *err);
/* The same for the WAL and the shared memory, too. */
IBID_CHECK enum ibid_code lite_file_look(struct lite_store *store, struct ibid_err *err);
/* What one of these has told before; none. */
IBID_CHECK enum ibid_code lite_file_noted(struct lite_store *store, struct ibid_err *err);
/* A connection to this file, and to no other that is at the path by now. */
IBID_CHECK enum ibid_code lite_file_connect(struct lite_store *store,
                                            const struct lite_conn_options *options,
                                            struct lite_conn **ret, struct ibid_err *err);

enum ibid_code lite_pool_init(struct lite_pool *pool, size_t cap, struct ibid_err *err);
void lite_pool_release(struct lite_pool *pool); /* takes a half-built one */
IBID_CHECK enum ibid_code lite_reader_take(struct lite_store *store, struct lite_conn **ret,
                                           struct ibid_err *err);
void lite_reader_give(struct lite_store *store, struct lite_conn *conn); /* takes NULL */

/* ---- The writer: writer.c ------------------------------------------------------------------- */

/* Enter the gate and begin, waiting at most `wait_us` for both together: IBID_BUSY. */
IBID_CHECK enum ibid_code lite_write_begin(struct lite_store *store, int64_t wait_us,
                                           struct lite_conn **ret, struct ibid_err *err);
/* Commit or roll back, and leave the gate. IBID_UNKNOWN as in store.h; on any failure rolled back.
 */
IBID_CHECK enum ibid_code lite_write_commit(struct lite_store *store, struct ibid_err *err);
void lite_write_rollback(struct lite_store *store);
/* Commit when `code` is IBID_OK, roll back otherwise. */
enum ibid_code lite_write_end(struct lite_store *store, enum ibid_code code, struct ibid_err *err);

/* As lite_write_end, for a write that settles every commit of unknown outcome before it (I7). */
enum ibid_code lite_write_fence(struct lite_store *store, struct lite_conn *conn,
                                struct ibid_err *err);

/* The writer's connection without a transaction; given back by lite_writer_return. */
IBID_CHECK enum ibid_code lite_writer_take(struct lite_store *store, struct lite_conn **ret,
                                           struct ibid_err *err);

/* The writer's connection for a look, where nobody uses it; NULL otherwise. Returned at once. */
struct lite_conn *lite_writer_borrow(struct lite_store *store);
void lite_writer_return(struct lite_store *store);

/* How long a verb waits that has no time of its own. */
int64_t lite_wait_us(const struct lite_store *store);

/* Does a command of this identity hold the gate now? */
bool lite_runs(struct lite_store *store, const struct identity *identity);

/* ---- Transactions: tx.c --------------------------------------------------------------------- */

IBID_CHECK enum ibid_code lite_tx_open(struct lite_store *store, const struct identity *identity,
                                       const struct work_context *context, struct lite_tx **ret,
                                       struct ibid_err *err);
/* The open transaction goes on for another command; both must outlive it. */
void lite_tx_turn(struct lite_tx *tx, const struct identity *identity,
                  const struct work_context *context);
enum ibid_code lite_tx_commit(struct tx **tx, struct arena *arena, struct outcome *ret,
                              struct ibid_err *err);
void lite_tx_rollback(struct tx **tx);
void *lite_tx_lend(struct tx *tx, bool lent);

/* IBID_OK when the transaction is open and may go on; its doom otherwise. */
IBID_CHECK enum ibid_code lite_tx_ready(struct lite_tx *tx, struct ibid_err *err);

/* A run within the transaction: as lite_start, where the transaction is open and may go on. */
IBID_CHECK enum ibid_code lite_tx_start(struct lite_tx *tx, enum lite_sql sql, struct lite_run *run,
                                        struct ibid_err *err);

/* Doom it with what `err` says, unless `code` is IBID_OK; the first doom stays. Returns `code`. */
enum ibid_code lite_tx_failed(struct lite_tx *tx, enum ibid_code code, const struct ibid_err *err);

/* The same with a reason and status: for rejections. */
enum ibid_code lite_tx_reject(struct lite_tx *tx, const char *reason, int status, const char *text,
                              struct ibid_err *err);

/* Tell an outcome what doomed the transaction. Returns its code. */
enum ibid_code lite_tx_doom(const struct lite_tx *tx, struct arena *arena, struct outcome *ret,
                            struct ibid_err *err);

/* ---- Checkpoints: checkpoint.c -------------------------------------------------------------- */

/* After opening it: an earlier store of this process may keep the WAL of this file. */
void lite_checkpointer_look(struct lite_store *store);

/* Closes it, which moves the rest of the WAL into the file, unless it keeps the WAL. */
void lite_checkpointer_release(struct lite_store *store);

void lite_mover_init(struct lite_mover *mover);
void lite_mover_release(struct lite_mover *mover); /* ends its thread */

/* Have the WAL moved into the file when it has grown. The caller does not wait for it. */
void lite_checkpoint_when_due(struct lite_store *store);

/* Move all of it now, so that what is in the WAL is in the file and on disk. */
IBID_CHECK enum ibid_code lite_checkpoint(struct lite_store *store, struct ibid_err *err);

/* The same, and leave nothing in the WAL's file, as far as readers let go of it. */
void lite_checkpoint_truncate(struct lite_store *store);

/* ---- Verbs, by concept ---------------------------------------------------------------------- */

/* schema.c */
enum ibid_code lite_migrate(struct store *, int *ret_from, int *ret_to, struct ibid_err *);
enum ibid_code lite_check_schema(struct store *, int *ret_version, struct ibid_err *);
enum ibid_code lite_apply_schema(struct store *, const struct schema_file *, enum schema_state *ret,
                                 struct ibid_err *);
enum ibid_code lite_check_decimal_column(struct store *, const char *name, struct ibid_err *);
enum ibid_code lite_describe_index(struct store *, struct arena *, const char *name,
                                   struct index_row *ret, struct ibid_err *);
IBID_CHECK enum ibid_code lite_schema_version(struct lite_conn *conn, int *ret,
                                              struct ibid_err *err);
IBID_CHECK enum ibid_code lite_use_wal(struct lite_store *store, struct ibid_err *err);

/* contract.c */

/* run_script.c */
enum ibid_code lite_make_script(struct store *, const char *file, const char *text,
                                const struct param_spec *params, size_t count, struct script **ret,
                                struct ibid_err *);
void lite_free_script(struct store *, struct script *);
enum ibid_code lite_run_script(struct tx *, struct arena *, const struct script *,
                               const char *const *values, struct outcome *ret, struct ibid_err *);
enum ibid_code lite_run_statements(struct tx *, struct arena *, const struct script *,
                                   const char *const *values, struct outcome *, struct ibid_err *);
enum ibid_code lite_run_query(struct tx *, struct arena *, const struct script *,
                              const char *const *values, struct outcome *ret, struct ibid_err *);

/* prepare.c */
enum ibid_code lite_prepare_scripts(struct store *, const struct script_use *, size_t count,
                                    finding_fn *, void *user, struct ibid_err *);

/* claim.c */
enum ibid_code lite_claim(struct store *, struct arena *, const struct identity *,
                          const struct work_context *context, struct claim *ret, struct ibid_err *);
enum ibid_code lite_resolve(struct store *, struct arena *, const struct identity *,
                            int64_t wait_us, struct claim *ret, struct ibid_err *);

/* group.c */
size_t lite_lanes(const struct store *);
enum ibid_code lite_run_group(struct store *, struct group_member **members, size_t count,
                              struct ibid_err *);

/* command.c */
enum ibid_code lite_put_command(struct tx *, const struct command_row *,
                                const struct command_row *previous, struct ibid_err *);
/* On the given connection. IBID_NOT_FOUND without a text when there is none. */
IBID_CHECK enum ibid_code lite_find_command(struct lite_conn *conn, struct arena *arena,
                                            const struct identity *identity,
                                            struct command_row *ret, struct ibid_err *err);

/* stage.c */
enum ibid_code lite_renew_lease(struct store *, const char *tenant, const struct uuid *id,
                                int64_t token, int64_t lease_us, struct ibid_err *);

/* adopt.c */
enum ibid_code lite_adopt(struct store *, void *connection, struct tx **ret, struct ibid_err *);
enum ibid_code lite_begin_adopted(struct tx *, struct arena *, const struct beginning *,
                                  struct begun *ret, struct ibid_err *);
enum ibid_code lite_finish_adopted(struct tx *, const struct finishing *, struct ibid_err *);
void lite_release_adopted(struct tx **);

/* event.c */
enum ibid_code lite_put_event(struct tx *, const struct event_row *, struct ibid_err *);

/* outbox.c */
enum ibid_code lite_lease_lanes(struct store *, struct arena *, const struct lane_wish *,
                                struct lane_lease **ret, size_t *ret_count, size_t *ret_share,
                                struct ibid_err *);
enum ibid_code lite_read_lane(struct store *, struct arena *, const struct lane_lease *,
                              const char *cursor, size_t limit, bool doubtful,
                              struct lane_batch *ret, struct ibid_err *);
enum ibid_code lite_list_held(struct store *, struct arena *, const struct lane_lease *,
                              struct held_event **ret, size_t *ret_count, struct ibid_err *);
enum ibid_code lite_settle_lane(struct store *, const struct lane_settlement *, struct ibid_err *);
enum ibid_code lite_count_outbox(struct store *, size_t limit, bool *ret_more, struct ibid_err *);
enum ibid_code lite_measure_outbox(struct store *, struct arena *, struct backlog_row **ret,
                                   size_t *ret_count, struct ibid_err *);

/* outbox_status.c */
enum ibid_code lite_list_outbox(struct store *, struct arena *, const struct outbox_filter *,
                                struct outbox_row **ret, size_t *ret_count, struct ibid_err *);

/* audit.c */
enum ibid_code lite_put_audit(struct tx *, const struct audit_row *, struct ibid_err *);

/* On the given connection. */
IBID_CHECK enum ibid_code lite_count_evidence(struct lite_conn *conn,
                                              const struct key_conflict_row *row,
                                              struct ibid_err *err);

/* tx.c */
enum ibid_code lite_begin_action(struct store *, struct tx **ret, struct ibid_err *);

/* duplicate.c */
enum ibid_code lite_put_duplicates(struct store *, const struct duplicate_row *, size_t count,
                                   const struct duplicate_seen_row *, size_t seen_count,
                                   struct ibid_err *);

/* retain.c */
enum ibid_code lite_retain_commands(struct store *, struct arena *, const struct retention *,
                                    struct retention_cursor *, struct retention_count *ret,
                                    struct ibid_err *);
enum ibid_code lite_retain_history(struct store *, const struct retention *,
                                   struct retention_count *ret, bool *ret_more, struct ibid_err *);

/* archive.c */
enum ibid_code lite_next_span(struct store *, struct arena *, int64_t before_us, int64_t now_us,
                              const struct archive_span *after, struct archive_span *ret,
                              struct ibid_err *);
enum ibid_code lite_read_span(struct store *base, const struct archive_span *span,
                              archive_line_fn *fn, void *user, struct archive_seal *ret,
                              struct ibid_err *err);
enum ibid_code lite_drop_span(struct store *, const struct archive_span *,
                              const struct archive_seal *, const struct archive_row *,
                              struct ibid_err *);
enum ibid_code lite_restore_events(struct store *, const struct restoring *,
                                   struct restore_count *ret, struct ibid_err *);

/* erase.c */
enum ibid_code lite_erase_commands(struct store *, const struct erasure *,
                                   struct erasure_progress *, struct ibid_err *);

/* measure.c */
enum ibid_code lite_measure(struct store *, struct arena *, struct measurement *ret,
                            struct ibid_err *);

/* ready.c */
enum ibid_code lite_ready(struct store *, struct ibid_err *);

/* doctor.c */
/* The network file system that statfs calls `magic`; NULL: none that is known. */
const char *lite_network_name(uint64_t magic);
enum ibid_code lite_doctor(struct store *, finding_fn *, void *user, struct ibid_err *);

/* ---- Ordinary statements: ordinary.c -------------------------------------------------------- */

/* On the given connection. `rows` NULL: it gives none. A statement that demands a row and changes
 * none is IBID_RETRY. */
IBID_CHECK enum ibid_code lite_run_sql(struct lite_conn *conn, const struct sql_in *in,
                                       struct row_list *rows, struct ibid_err *err);

/* The current row of a run, by the names of its columns. Check arena->failed. */
void lite_read_row(struct lite_run *run, const struct row_shape *shape, struct arena *arena,
                   void *ret);

enum ibid_code lite_put(struct tx *, const struct sql_in *, struct ibid_err *);
enum ibid_code lite_change(struct store *, const struct sql_in *, int64_t *ret_changed,
                           struct ibid_err *);
enum ibid_code lite_query(struct store *, const struct sql_in *, struct row_list *ret,
                          struct ibid_err *);
enum ibid_code lite_check_settled(struct store *, enum ibid_code code, struct ibid_err *);

/* ---- Reading many rows: rows.c -------------------------------------------------------------- */

/* A growing array in an arena. */
struct lite_rows {
	struct arena *arena;
	size_t size; /* of one row */
	void *items;
	size_t count, room;
};

void *lite_rows_add(struct lite_rows *rows); /* zeroed; NULL: out of memory */

/* Add every row of a started run, each filled in by `read`. Does nothing when `code` is set. */
typedef void lite_read_fn(struct lite_run *run, struct arena *arena, void *row);
IBID_CHECK enum ibid_code lite_rows_read(struct lite_rows *rows, struct lite_run *run,
                                         lite_read_fn *read, enum ibid_code code,
                                         struct ibid_err *err);

#endif
