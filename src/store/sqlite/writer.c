/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c -- the one connection that writes, and what its commit means.
 *
 * A commit that failed is definite only where the frame that commits can't be in the WAL: SQLite
 * stopped before it wrote (a lock, a deferred constraint), or the disk had no room for all of it.
 * That frame is the last that is written, and what is there of it is not whole; what is synced or
 * told to others comes after it. Anything else may or may not be found after the next start (a
 * commit that returned an I/O error was), so it is unknown and the connection is not used again
 * (L2, I7). */
#include "store/sqlite/lite.h"

#include <assert.h>
#include <string.h>

int64_t lite_wait_us(const struct lite_store *store)
{
	return (int64_t)store->busy_ms * 1000;
}

static enum ibid_code open_writer(struct lite_store *store, struct ibid_err *err)
{
	struct lite_conn_options options = {
	    .path = store->path,
	    .env = store->env,
	    .role = LITE_WRITER,
	    .busy_ms = store->busy_ms,
	    .hook = &store->base.hook,
	    .wal_pages = &store->wal_pages,
	    .full = &store->full,
	};
	if (store->writer)
		return lite_file_noted(store, err);
	return lite_file_connect(store, &options, &store->writer, err);
}

static enum ibid_code begin(struct lite_store *store, int64_t wait_us, struct ibid_err *err)
{
	int wait_ms = (int)(wait_us > 0 ? wait_us / 1000 : 0);
	enum ibid_code code = open_writer(store, err);
	if (code)
		return code;
	assert(store->writer->mode == LITE_OURS && sqlite3_get_autocommit(store->writer->db));
	sqlite3_busy_timeout(store->writer->db, wait_ms);
	return lite_do(store->writer, LITE_begin, err);
}

static void undo(struct lite_store *store)
{
	struct ibid_err ignored;
	store->writer->mode = LITE_OURS;
	/* SQLite has rolled back by itself after some errors. */
	if (sqlite3_get_autocommit(store->writer->db))
		return;
	if (lite_do(store->writer, LITE_rollback, &ignored) == IBID_OK)
		return;
	lite_conn_close(store->writer);
	store->writer = NULL;
}

enum ibid_code lite_write_begin(struct lite_store *store, int64_t wait_us, struct lite_conn **ret,
                                struct ibid_err *err)
{
	int64_t until = env_steady_us(env_system()) + wait_us;
	if (!gate_enter(&store->gate, wait_us))
		return err_set(err, IBID_BUSY, "%s: other commands hold the writer; try again",
		               store->path);
	enum ibid_code code = begin(store, until - env_steady_us(env_system()), err);
	if (code && store->writer)
		undo(store); /* it may have begun all the same */
	if (code)
		gate_leave(&store->gate);
	else
		*ret = store->writer;
	return code;
}

enum ibid_code lite_writer_take(struct lite_store *store, struct lite_conn **ret,
                                struct ibid_err *err)
{
	if (!gate_enter(&store->gate, lite_wait_us(store)))
		return err_set(err, IBID_BUSY, "%s: other commands hold the writer; try again",
		               store->path);
	enum ibid_code code = open_writer(store, err);
	if (code)
		gate_leave(&store->gate);
	else
		*ret = store->writer;
	return code;
}

struct lite_conn *lite_writer_borrow(struct lite_store *store)
{
	if (!gate_enter(&store->gate, 0))
		return NULL;
	if (store->writer && !store->stale && !atomic_load(&store->files.gone))
		return store->writer;
	gate_leave(&store->gate);
	return NULL;
}

void lite_writer_return(struct lite_store *store)
{
	gate_leave(&store->gate);
}

/* Where a write that is cut short may harm its neighbours, SQLite writes the frame that commits
 * once more, up to the end of the sector. */
static bool commits_by_the_last_write(sqlite3 *db)
{
	sqlite3_file *file = NULL;
	sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	return file && file->pMethods &&
	       file->pMethods->xDeviceCharacteristics(file) & SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static enum ibid_code commit_failed(struct lite_store *store, int rc, struct ibid_err *err)
{
	const char *message = sqlite3_errmsg(store->writer->db);
	switch (rc & 0xff) {
	case SQLITE_BUSY: return lite_fail(store->writer, rc, err);
	case SQLITE_CONSTRAINT: return err_set(err, IBID_FAILED, "the commit was refused: %s", message);
	case SQLITE_FULL:
		if (commits_by_the_last_write(store->writer->db))
			return lite_fail(store->writer, rc, err); /* fall through */
	default:
		store->stale = true; /* L2 */
		return err_set(err, IBID_UNKNOWN, "%s: the commit did not report success (%s)", store->path,
		               message);
	}
}

static enum ibid_code commit(struct lite_store *store, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(store->writer, LITE_commit, &run, err);
	if (!code && lite_finish(&run, err))
		code = commit_failed(store, run.rc, err);
	lite_end(&run);
	return code;
}

/* `fences`: it writes a page, whatever it finds. */
static enum ibid_code end(struct lite_store *store, bool fences, struct ibid_err *err)
{
	enum ibid_code code = lite_file_check(store, err);
	if (!code)
		code = commit(store, err);
	if (!code && fences)
		store->stale = false;
	if (!code)
		code = lite_file_check(store, err); /* F1 */
	if (code)
		undo(store);
	if (code == IBID_UNKNOWN) {
		lite_conn_close(store->writer);
		store->writer = NULL;
	}
	gate_leave(&store->gate);
	/* After the gate: others need not wait for the disk. */
	if (!code)
		lite_checkpoint_when_due(store);
	return code;
}

enum ibid_code lite_write_commit(struct lite_store *store, struct ibid_err *err)
{
	return end(store, false, err);
}

void lite_write_rollback(struct lite_store *store)
{
	undo(store);
	gate_leave(&store->gate);
}

enum ibid_code lite_write_end(struct lite_store *store, enum ibid_code code, struct ibid_err *err)
{
	if (!code)
		return lite_write_commit(store, err);
	lite_write_rollback(store);
	return code;
}

/* A commit that failed while it was written may have left complete frames behind the end of the
 * WAL: invisible now, but recovery after a crash would take them for committed. One more committed
 * write overwrites their beginning, and what a look said is final (I7). */
enum ibid_code lite_write_fence(struct lite_store *store, struct lite_conn *conn,
                                struct ibid_err *err)
{
	enum ibid_code code = lite_do(conn, LITE_fence_put, err);
	if (!code)
		return end(store, true, err);
	lite_write_rollback(store);
	return code;
}

static bool same_identity(const struct identity *a, const struct identity *b)
{
	return strcmp(a->key, b->key) == 0 && strcmp(a->scope, b->scope) == 0 &&
	       strcmp(a->operation, b->operation) == 0 && strcmp(a->tenant, b->tenant) == 0;
}

bool lite_runs(struct lite_store *store, const struct identity *identity)
{
	pthread_mutex_lock(&store->running_lock);
	bool runs = store->running && same_identity(store->running, identity);
	pthread_mutex_unlock(&store->running_lock);
	return runs;
}
