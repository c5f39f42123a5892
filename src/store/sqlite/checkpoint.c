/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c -- one connection moves the WAL into the file, on a thread of its own.
 *
 * PASSIVE never waits for readers or writers and never makes them wait; what it leaves, the next
 * one takes. The WAL begins anew only when all of it was moved and nobody writes meanwhile: where
 * commits follow each other without a pause, the writer is kept out for the little that is left.
 *
 * (K1) The gate is entered before the checkpointer's lock is taken, never after.
 * (K2) Beside a writer, a checkpoint begins only while much of the WAL is not moved yet. Before
 * SQLite 3.51.3 one that began when all was moved, while a commit began the WAL anew, could lose
 * that commit. What is moved is counted by each process for itself: against others (V6) in
 * wal_vfs.c protects.
 *
 * (K3) What was moved is not known to be in the file before a sync of the file succeeds, and an
 * error of the disk is told once. After it the WAL is kept: all of it is moved again when the file
 * is opened after every process has let go of it. The checkpointer reads on until the process ends,
 * so that nobody else begins the WAL anew: not the next store on that file, and no other process.
 */
#include "store/sqlite/lite.h"

#include <stdlib.h>
#include <sys/stat.h>

enum {
	CHECKPOINT_PAGES = 4000, /* so many more are moved at a time */
	ANEW_PAGES = 8000,       /* from then on the writer may be kept out for it */
};

/* While a reader holds on to old pages the WAL can't be moved as a whole; trying after every commit
 * would sync the file each time. */
static bool due(struct lite_store *store)
{
	/* In this order: what was moved is never more than what there is, unless the WAL began anew. */
	int moved_at = atomic_load(&store->moved_at), pages = atomic_load(&store->wal_pages);
	if (pages < moved_at) {
		atomic_compare_exchange_strong(&store->moved_at, &moved_at, 0);
		moved_at = 0;
	}
	return pages - moved_at >= CHECKPOINT_PAGES && !atomic_load(&store->unsynced); /* K2, K3 */
}

/* ---- WALs that are kept --------------------------------------------------------------------- */

struct kept {
	dev_t device;
	ino_t inode;
	struct lite_conn *reader; /* it is never closed */
	struct kept *next;
};

static struct {
	pthread_mutex_t lock; /* guards the list */
	struct kept *list;
} all_kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A statement that is not reset holds on to what it reads. */
static bool hold(struct lite_conn *conn)
{
	sqlite3_stmt *statement;
	struct ibid_err err;
	return !lite_conn_statement(conn, LITE_schema_version, &statement, &err) &&
	       sqlite3_step(statement) == SQLITE_ROW;
}

static bool is_kept(const struct stat *file)
{
	bool found = false;
	pthread_mutex_lock(&all_kept.lock);
	for (const struct kept *at = all_kept.list; at && !found; at = at->next)
		found = at->device == file->st_dev && at->inode == file->st_ino;
	pthread_mutex_unlock(&all_kept.lock);
	return found;
}

static bool remember(struct lite_store *store)
{
	struct kept *kept = calloc(1, sizeof *kept);
	struct stat file;
	if (!kept || stat(store->path, &file)) {
		free(kept);
		return false;
	}
	*kept = (struct kept){file.st_dev, file.st_ino, store->checkpointer, NULL};
	pthread_mutex_lock(&all_kept.lock);
	kept->next = all_kept.list;
	all_kept.list = kept;
	pthread_mutex_unlock(&all_kept.lock);
	return true;
}

void lite_checkpointer_look(struct lite_store *store)
{
	struct stat file;
	if (!stat(store->path, &file) && is_kept(&file))
		atomic_store(&store->unsynced, true);
}

void lite_checkpointer_release(struct lite_store *store)
{
	if (!store->holds)
		lite_conn_close(store->checkpointer);
}

/* ---- Under the checkpointer's lock ---------------------------------------------------------- */

static void keep_wal(struct lite_store *store)
{
	atomic_store(&store->unsynced, true);
	sqlite3_db_config(store->checkpointer->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	store->holds = hold(store->checkpointer) && remember(store);
	LOG(&store->log, IBID_LOG_ERROR, "store.sync_failed", {"file", log_text(store->path)},
	    {"effect", log_text("nothing is lost, but the WAL grows: look at the disk, then stop every "
	                        "process that uses the file and start them anew")});
}

/* A commit is counted a moment after a checkpoint may see it. */
static void note_moved(struct lite_store *store, int pages)
{
	int known = atomic_load(&store->wal_pages);
	atomic_store(&store->moved_at, pages >= 0 && pages < known ? pages : known);
}

static void move(struct lite_store *store)
{
	int pages = -1;
	int rc = sqlite3_wal_checkpoint_v2(store->checkpointer->db, NULL, SQLITE_CHECKPOINT_PASSIVE,
	                                   &pages, NULL);
	if (rc == SQLITE_IOERR_FSYNC)
		keep_wal(store);
	/* The commits are safe in the WAL; what failed is tried again after the next ones. */
	else if (rc && rc != SQLITE_BUSY)
		LOG(&store->log, IBID_LOG_WARN, "store.checkpoint_failed",
		    {"reason", log_text(sqlite3_errmsg(store->checkpointer->db))});
	note_moved(store, pages);
}

/* A checkpoint syncs the file only where it moves all that there is. What was moved before is
 * synced here: its error is told apart from those of others (K3), and those who wait at the gate do
 * not wait for that, too. False: the WAL is kept. */
static bool sync_moved(struct lite_store *store)
{
	sqlite3_file *file = NULL;
	if (atomic_load(&store->unsynced))
		return false;
	sqlite3_file_control(store->checkpointer->db, NULL, SQLITE_FCNTL_FILE_POINTER, &file);
	if (file && file->pMethods &&
	    file->pMethods->xSync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY))
		keep_wal(store);
	return !atomic_load(&store->unsynced);
}

/* ---- When it is due ------------------------------------------------------------------------- */

/* Is there more than was moved? */
static bool has_rest(struct lite_store *store)
{
	return atomic_load(&store->wal_pages) > atomic_load(&store->moved_at);
}

/* Beside writers that never pause, the WAL would grow forever. */
static void move_the_rest(struct lite_store *store)
{
	if (!gate_enter(&store->gate, lite_wait_us(store))) /* K1 */
		return;
	pthread_mutex_lock(&store->checkpoint_lock);
	if (has_rest(store) && !atomic_load(&store->unsynced))
		move(store);
	pthread_mutex_unlock(&store->checkpoint_lock);
	gate_leave(&store->gate);
}

static void move_due(struct lite_store *store)
{
	bool rest = false;
	pthread_mutex_lock(&store->checkpoint_lock);
	if (due(store)) { /* still: whoever asked had looked before the last move (K2) */
		move(store);
		rest = atomic_load(&store->wal_pages) >= ANEW_PAGES && sync_moved(store);
	}
	pthread_mutex_unlock(&store->checkpoint_lock);
	if (rest)
		move_the_rest(store);
}

static void *run_mover(void *user)
{
	struct lite_store *store = user;
	struct lite_mover *mover = &store->mover;
	pthread_mutex_lock(&mover->lock);
	while (!mover->ends) {
		if (!mover->wanted) {
			pthread_cond_wait(&mover->woken, &mover->lock);
			continue;
		}
		pthread_mutex_unlock(&mover->lock);
		move_due(store);
		pthread_mutex_lock(&mover->lock);
		mover->wanted = false;
	}
	pthread_mutex_unlock(&mover->lock);
	return NULL;
}

void lite_checkpoint_when_due(struct lite_store *store)
{
	struct lite_mover *mover = &store->mover;
	if (atomic_load(&store->wal_pages) < CHECKPOINT_PAGES || !due(store))
		return;
	pthread_mutex_lock(&mover->lock);
	if (!mover->wanted) {
		mover->wanted = true;
		if (!mover->runs)
			mover->runs = !pthread_create(&mover->thread, NULL, run_mover, store);
		else
			pthread_cond_signal(&mover->woken);
	}
	bool moves = mover->runs;
	mover->wanted &= moves;
	pthread_mutex_unlock(&mover->lock);
	if (!moves)
		move_due(store);
}

void lite_mover_init(struct lite_mover *mover)
{
	pthread_mutex_init(&mover->lock, NULL);
	pthread_cond_init(&mover->woken, NULL);
}

void lite_mover_release(struct lite_mover *mover)
{
	pthread_mutex_lock(&mover->lock);
	mover->ends = true;
	pthread_cond_signal(&mover->woken);
	pthread_mutex_unlock(&mover->lock);
	if (mover->runs)
		pthread_join(mover->thread, NULL);
	pthread_cond_destroy(&mover->woken);
	pthread_mutex_destroy(&mover->lock);
}

enum ibid_code lite_checkpoint(struct lite_store *store, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	int pages = -1;
	pthread_mutex_lock(&store->checkpoint_lock);
	if (!sync_moved(store)) {
		code = err_set(err, IBID_IO, "%s can't be synced: look at the disk, and start ibid anew",
		               store->path);
	} else {
		int rc = sqlite3_wal_checkpoint_v2(store->checkpointer->db, NULL, SQLITE_CHECKPOINT_FULL,
		                                   &pages, NULL);
		if (rc)
			code = lite_fail(store->checkpointer, rc, err);
		else
			note_moved(store, pages);
	}
	pthread_mutex_unlock(&store->checkpoint_lock);
	return code;
}

void lite_checkpoint_truncate(struct lite_store *store)
{
	pthread_mutex_lock(&store->checkpoint_lock);
	if (sync_moved(store) && !sqlite3_wal_checkpoint_v2(store->checkpointer->db, NULL,
	                                                    SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL))
		note_moved(store, -1);
	pthread_mutex_unlock(&store->checkpoint_lock);
}
