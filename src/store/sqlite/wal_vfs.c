/* SPDX-License-Identifier: Apache-2.0 */
/* wal_vfs.c -- the frames of a transaction reach the WAL in one write.
 *
 * SQLite writes a page into the WAL as a frame: 24 bytes of header, then the page, each by a call
 * of its own; the frame that commits is the last one and says so in its header. A command of the
 * ledger makes about ten frames. Here a frame that does not commit is kept until the next one, and
 * the page of the committing frame takes all of them along: what SQLite sees of that last write is
 * what it would see of the last of many, its error included.
 *
 * (V1) Nothing is kept when a commit's last write returns. SQLite then syncs, and only after that
 * tells other connections of the frames, through the index in shared memory; so nobody is told of
 * bytes that are not in the file, whatever `synchronous` says.
 * (V2) What is kept is written before the file is looked at, measured, cut, synced or written
 * elsewhere: frames of a full cache, which are written long before the commit and read again, and
 * checksums that are then made anew.
 * (V3) Bytes are kept only while the writer lock is held, and forgotten when it goes: they belong
 * to a transaction that was rolled back, and another process may write into the same place.
 * (V4) What could not be written stays kept, and the next call that needs it says so again: SQLite
 * believes that it is in the file, and may go on after the error of one statement.
 * (V5) Whatever does not look like the next frame, because the version or a sector's padding wants
 * it so, is written at once.
 *
 * (V6) Before SQLite 3.51.3 a checkpoint that begins may believe a header of the WAL's index that a
 * writer has replaced since: where another process had moved everything, that writer began the WAL
 * anew, and its commits were lost or the file damaged. Here the writer lock is taken before that
 * header is read, and let go of at the first lock that the checkpoint takes after it: there it has
 * seen, under that lock, that something is left to move, and while that is so nobody begins the WAL
 * anew. A checkpoint that finds nothing takes none, and ends with the lock of checkpoints. With
 * that window held open and processes stopped at random, 11 of 20 files were damaged without this
 * by 3.40.1, and by 3.54.1, which has SQLite's own guard against it, still 6 of 66: so it is done
 * with every version (test/store/test_wal_reset.c). Closing the last connection moves the WAL under
 * a lock that keeps all others out.
 *
 * A file is the one of the VFS below, with a table of methods in which a few are ours: all others
 * are called as if this layer were not there. The layer knows no threads: files belong to their
 * connection. */
#include "store/sqlite/wal_vfs.h"

#include "base/env.h"

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FRAME_HEADER = 24, /* bytes 4 to 7 of it: pages of the database after this commit, or 0 */
	WRITER_LOCK = 0,   /* its place among the locks in shared memory */
	CHECKPOINT_LOCK = 1,
	READ_LOCKS = 3,           /* these and those after it */
	WRITER_WAIT_US = 2000000, /* of a checkpoint, for a moment between two commits */
	WRITER_STEP_US = 200,
	/* The largest page is the longest write that SQLite makes: one of more than 128 KiB the VFS
	 * below may do in part, or not at all. */
	KEPT_BYTES_MAX = 65536,
	NAME_SIZE = 32,
};

/* What stands behind a file of the VFS below, at its table of methods. */
struct tap {
	sqlite3_io_methods methods; /* first: a file finds the rest by it */
	const sqlite3_io_methods *below;
	struct tap *other; /* of a database its WAL, of a WAL its database; NULL: closed */
	bool writing;      /* a database's: SQLite holds its writer lock */
	bool beginning;    /* a database's: that lock is held for a checkpoint that begins (V6) */

	/* A WAL's. */
	unsigned char *kept;
	int kept_size;
	sqlite3_int64 end;            /* of the last write, -1: unknown; the kept bytes end there */
	bool header_kept, committing; /* the last write was a frame's header, of a commit */
};

struct layer {
	sqlite3_vfs base; /* first */
	sqlite3_vfs *below;
	char name[NAME_SIZE];
};

static struct tap *tap_of(sqlite3_file *file)
{
	return (struct tap *)file->pMethods;
}

/* ---- What is kept --------------------------------------------------------------------------- */

static void forget(struct tap *tap)
{
	if (tap->kept_size)
		tap->end = -1;
	tap->kept_size = 0;
	tap->header_kept = false;
}

/* A quota, or a limit on the size of a file, is a full disk to whoever writes: nothing behind what
 * there was room for is written. */
static int write_below(sqlite3_file *file, const struct tap *tap, const void *bytes, int size,
                       sqlite3_int64 at)
{
	int number = 0, rc = tap->below->xWrite(file, bytes, size, at);
	if (rc == SQLITE_IOERR_WRITE &&
	    !tap->below->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number) &&
	    (number == EDQUOT || number == EFBIG))
		rc = SQLITE_FULL;
	return rc;
}

static int write_kept(sqlite3_file *file, struct tap *tap)
{
	int rc = SQLITE_OK;
	if (tap->kept_size)
		rc = write_below(file, tap, tap->kept, tap->kept_size, tap->end - tap->kept_size);
	if (!rc)
		tap->kept_size = 0; /* V4 */
	return rc;
}

static bool has_room(struct tap *tap, int size)
{
	if (!tap->kept)
		tap->kept = malloc(KEPT_BYTES_MAX);
	return tap->kept && size <= KEPT_BYTES_MAX - tap->kept_size;
}

/* Bytes that continue the last write: kept, or written where there is no room for them. */
static int keep(sqlite3_file *file, struct tap *tap, const void *bytes, int size)
{
	int rc = SQLITE_OK;
	if (!has_room(tap, size))
		rc = write_kept(file, tap);
	if (rc)
		return rc;
	if (!has_room(tap, size)) {
		rc = write_below(file, tap, bytes, size, tap->end);
	} else {
		memcpy(tap->kept + tap->kept_size, bytes, (size_t)size);
		tap->kept_size += size;
	}
	if (!rc)
		tap->end += size;
	return rc;
}

/* The last write of a commit takes along what is kept (V1). Where it fails, SQLite was not told
 * that these bytes are written: they are not kept. */
static int keep_and_write(sqlite3_file *file, struct tap *tap, const void *bytes, int size)
{
	int rc = keep(file, tap, bytes, size);
	if (rc || !tap->kept_size)
		return rc;
	rc = write_kept(file, tap);
	if (rc) {
		tap->kept_size -= size;
		tap->end -= size;
	}
	return rc;
}

static int write_at_once(sqlite3_file *file, struct tap *tap, const void *bytes, int size,
                         sqlite3_int64 at)
{
	int rc = write_kept(file, tap);
	if (!rc)
		rc = write_below(file, tap, bytes, size, at);
	if (!rc)
		tap->end = at + size;
	return rc;
}

/* ---- Methods of a WAL ----------------------------------------------------------------------- */

static bool commits(const unsigned char *header)
{
	return header[4] || header[5] || header[6] || header[7];
}

static int wal_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
	struct tap *tap = tap_of(file);
	bool page = tap->header_kept;
	int rc;
	tap->header_kept = false;
	if (at != tap->end || !tap->other || !tap->other->writing)
		return write_at_once(file, tap, bytes, size, at); /* V2, V3 */
	if (page && tap->committing)
		return keep_and_write(file, tap, bytes, size);
	if (page)
		return keep(file, tap, bytes, size);
	if (size != FRAME_HEADER)
		return write_at_once(file, tap, bytes, size, at); /* V5 */
	rc = keep(file, tap, bytes, size);
	tap->header_kept = !rc;
	tap->committing = commits(bytes);
	return rc;
}

static int wal_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 at)
{
	int rc = write_kept(file, tap_of(file));
	return rc ? rc : tap_of(file)->below->xRead(file, bytes, size, at);
}

static int wal_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	int rc = write_kept(file, tap_of(file));
	return rc ? rc : tap_of(file)->below->xTruncate(file, size);
}

static int wal_sync(sqlite3_file *file, int flags)
{
	int rc = write_kept(file, tap_of(file));
	return rc ? rc : tap_of(file)->below->xSync(file, flags);
}

static int wal_size(sqlite3_file *file, sqlite3_int64 *ret)
{
	int rc = write_kept(file, tap_of(file));
	return rc ? rc : tap_of(file)->below->xFileSize(file, ret);
}

static int wal_control(sqlite3_file *file, int op, void *arg)
{
	int rc = write_kept(file, tap_of(file));
	return rc ? rc : tap_of(file)->below->xFileControl(file, op, arg);
}

static int wal_fetch(sqlite3_file *file, sqlite3_int64 at, int size, void **ret)
{
	int rc = write_kept(file, tap_of(file));
	return rc ? rc : tap_of(file)->below->xFetch(file, at, size, ret);
}

static int wal_close(sqlite3_file *file)
{
	struct tap *tap = tap_of(file);
	if (tap->other)
		tap->other->other = NULL;
	free(tap->kept); /* V3: no transaction is open */
	return tap->below->xClose(file);
}

/* ---- Methods of a database ------------------------------------------------------------------ */

/* The writer lock comes and goes here, unless one connection has the file for itself. */
static int lock_writer(sqlite3_file *file, int flags)
{
	struct tap *tap = tap_of(file);
	bool unlock = flags & SQLITE_SHM_UNLOCK;
	if (unlock && tap->other)
		forget(tap->other); /* V3 */
	int rc = tap->beginning ? SQLITE_OK : tap->below->xShmLock(file, WRITER_LOCK, 1, flags);
	if (!rc)
		tap->writing = !unlock;
	return rc;
}

static void has_begun(sqlite3_file *file)
{
	struct tap *tap = tap_of(file);
	if (tap->beginning && !tap->writing)
		(void)tap->below->xShmLock(file, WRITER_LOCK, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
	tap->beginning = false;
}

static int await_writer(sqlite3_file *file)
{
	const struct tap *tap = tap_of(file);
	const int flags = SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE;
	int rc = tap->below->xShmLock(file, WRITER_LOCK, 1, flags);
	for (int left = WRITER_WAIT_US; rc == SQLITE_BUSY && left > 0; left -= WRITER_STEP_US) {
		env_sleep_us(env_system(), WRITER_STEP_US);
		rc = tap->below->xShmLock(file, WRITER_LOCK, 1, flags);
	}
	return rc;
}

/* V6 */
static int lock_checkpoint(sqlite3_file *file, int flags)
{
	struct tap *tap = tap_of(file);
	if (flags & SQLITE_SHM_UNLOCK)
		has_begun(file);
	int rc = tap->below->xShmLock(file, CHECKPOINT_LOCK, 1, flags);
	if (rc || flags & SQLITE_SHM_UNLOCK)
		return rc;
	rc = await_writer(file);
	tap->beginning = !rc;
	if (rc)
		(void)tap->below->xShmLock(file, CHECKPOINT_LOCK, 1,
		                           SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
	return rc;
}

static int database_shm_lock(sqlite3_file *file, int first, int count, int flags)
{
	bool exclusive = flags & SQLITE_SHM_EXCLUSIVE;
	if (exclusive && first == WRITER_LOCK)
		return lock_writer(file, flags);
	/* Recovery takes this one together with others, under the writer lock. */
	if (exclusive && first == CHECKPOINT_LOCK && count == 1)
		return lock_checkpoint(file, flags);
	if (first >= READ_LOCKS)
		has_begun(file);
	return tap_of(file)->below->xShmLock(file, first, count, flags);
}

static int database_close(sqlite3_file *file)
{
	struct tap *tap = tap_of(file);
	if (tap->other)
		tap->other->other = NULL;
	return tap->below->xClose(file);
}

/* ---- Opening -------------------------------------------------------------------------------- */

/* A table of an older version is shorter. */
static size_t methods_size(int version)
{
	if (version < 2)
		return offsetof(sqlite3_io_methods, xShmMap);
	return version < 3 ? offsetof(sqlite3_io_methods, xFetch) : sizeof(sqlite3_io_methods);
}

static void tap_init(struct tap *tap, sqlite3_file *file)
{
	*tap = (struct tap){.below = file->pMethods, .end = -1};
	memcpy(&tap->methods, tap->below, methods_size(tap->below->iVersion));
	if (tap->methods.iVersion > 3)
		tap->methods.iVersion = 3;
	file->pMethods = &tap->methods;
}

static void tap_database(struct tap *tap, sqlite3_file *file)
{
	if (file->pMethods->iVersion < 2)
		return; /* it has no locks to watch */
	tap_init(tap, file);
	tap->methods.xShmLock = database_shm_lock;
	tap->methods.xClose = database_close;
}

static void tap_wal(struct tap *tap, sqlite3_file *file, struct tap *database)
{
	tap_init(tap, file);
	tap->other = database;
	database->other = tap;
	tap->methods.xClose = wal_close;
	tap->methods.xRead = wal_read;
	tap->methods.xWrite = wal_write;
	tap->methods.xTruncate = wal_truncate;
	tap->methods.xSync = wal_sync;
	tap->methods.xFileSize = wal_size;
	tap->methods.xFileControl = wal_control;
	if (tap->methods.iVersion > 2)
		tap->methods.xFetch = wal_fetch;
}

static struct layer *layer_of(sqlite3_vfs *vfs)
{
	return (struct layer *)vfs;
}

static int file_size_below(const sqlite3_vfs *below)
{
	const int align = (int)_Alignof(max_align_t);
	return (below->szOsFile + align - 1) / align * align;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	struct tap *tap = (struct tap *)((char *)file + file_size_below(below));
	int rc = below->xOpen(below, name, file, flags, ret_flags);
	if (rc || !file->pMethods)
		return rc;
	if (flags & SQLITE_OPEN_MAIN_DB)
		tap_database(tap, file);
	if (flags & SQLITE_OPEN_WAL) {
		sqlite3_file *database = sqlite3_database_file_object(name);
		if (database->pMethods->iVersion > 1 && database->pMethods->xShmLock == database_shm_lock)
			tap_wal(tap, file, tap_of(database));
	}
	return rc;
}

/* ---- The rest of the VFS, which is the one below -------------------------------------------- */

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	return below->xDelete(below, name, sync);
}

static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	return below->xAccess(below, name, flags, ret);
}

static int full_path(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	return below->xFullPathname(below, name, size, ret);
}

static void *library_open(sqlite3_vfs *vfs, const char *name)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	return below->xDlOpen(below, name);
}

static void library_error(sqlite3_vfs *vfs, int size, char *ret)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	below->xDlError(below, size, ret);
}

static void (*library_symbol(sqlite3_vfs *vfs, void *library, const char *name))(void)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	return below->xDlSym(below, library, name);
}

static void library_close(sqlite3_vfs *vfs, void *library)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	below->xDlClose(below, library);
}

static int randomness(sqlite3_vfs *vfs, int size, char *ret)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	return below->xRandomness(below, size, ret);
}

static int sleep_us(sqlite3_vfs *vfs, int us)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	return below->xSleep(below, us);
}

static int current_time(sqlite3_vfs *vfs, double *ret)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	return below->xCurrentTime(below, ret);
}

static int current_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *ret)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	return below->xCurrentTimeInt64(below, ret);
}

static int last_error(sqlite3_vfs *vfs, int size, char *ret)
{
	sqlite3_vfs *below = layer_of(vfs)->below;
	return below->xGetLastError(below, size, ret);
}

/* One layer on each VFS, for as long as the process lives: a connection that a callback keeps open
 * outlives its store. SQLite's list of VFSs is the only one; two threads that look at the same time
 * add two of the same name, and either will do. */
static struct layer *layer_new(sqlite3_vfs *below, const char *name)
{
	struct layer *layer = calloc(1, sizeof *layer);
	if (!layer)
		return NULL;
	memcpy(layer->name, name, sizeof layer->name);
	layer->below = below;
	layer->base = (sqlite3_vfs){
	    .iVersion = below->iVersion < 2 ? 1 : 2,
	    .szOsFile = file_size_below(below) + (int)sizeof(struct tap),
	    .mxPathname = below->mxPathname,
	    .zName = layer->name,
	    .xOpen = open_file,
	    .xDelete = delete_file,
	    .xAccess = access_file,
	    .xFullPathname = full_path,
	    .xDlOpen = library_open,
	    .xDlError = library_error,
	    .xDlSym = library_symbol,
	    .xDlClose = library_close,
	    .xRandomness = randomness,
	    .xSleep = sleep_us,
	    .xCurrentTime = current_time,
	    .xGetLastError = last_error,
	    .xCurrentTimeInt64 = current_time_ms,
	};
	return layer;
}

const char *lite_wal_vfs(void)
{
	char name[NAME_SIZE];
	sqlite3_vfs *below = sqlite3_vfs_find(NULL);
	if (!below)
		return NULL;
	snprintf(name, sizeof name, "ibid-wal-%jx", (uintmax_t)(uintptr_t)below);
	sqlite3_vfs *found = sqlite3_vfs_find(name);
	if (found)
		return found->zName;
	struct layer *layer = layer_new(below, name);
	if (!layer)
		return NULL;
	if (sqlite3_vfs_register(&layer->base, 0)) {
		free(layer);
		return NULL;
	}
	return layer->name;
}
