/* SPDX-License-Identifier: Apache-2.0 */
#include "support/disk.h"

#include <sqlite3.h>
#include <stdlib.h>

struct disk disk;

struct bad_file {
	sqlite3_file base;
	bool wal;
	sqlite3_file *real; /* behind this struct */
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs bad_vfs;
static sqlite3_io_methods bad_methods;

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct bad_file *)file)->real;
}

static int bad_close(sqlite3_file *file)
{
	sqlite3_file *real = real_of(file);
	return real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;
}

static int bad_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 at)
{
	return real_of(file)->pMethods->xRead(real_of(file), bytes, size, at);
}

static int bad_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
	bool wal = ((struct bad_file *)file)->wal;
	if (disk.full) {
		real_of(file)->pMethods->xWrite(real_of(file), bytes, size / 2, at);
		return SQLITE_FULL;
	}
	if (wal && disk.cut_wal_write) {
		disk.cut_wal_write = false;
		real_of(file)->pMethods->xWrite(real_of(file), bytes, size / 2, at);
		return SQLITE_IOERR_WRITE;
	}
	if (wal) {
		disk.wal_writes++;
		if (size > disk.wal_write_longest)
			disk.wal_write_longest = size;
	}
	return real_of(file)->pMethods->xWrite(real_of(file), bytes, size, at);
}

static int bad_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int bad_sync(sqlite3_file *file, int flags)
{
	if (((struct bad_file *)file)->wal ? disk.fail_wal_sync : disk.fail_file_sync)
		return SQLITE_IOERR_FSYNC;
	return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int bad_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int bad_lock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int bad_unlock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int bad_check(sqlite3_file *file, int *result)
{
	return real_of(file)->pMethods->xCheckReservedLock(real_of(file), result);
}

static int bad_control(sqlite3_file *file, int op, void *arg)
{
	return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int bad_sector(sqlite3_file *file)
{
	return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int bad_device(sqlite3_file *file)
{
	return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int bad_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
	return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, ret);
}

static int bad_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
	return real_of(file)->pMethods->xShmLock(real_of(file), at, n, flags);
}

static void bad_shm_barrier(sqlite3_file *file)
{
	real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int bad_shm_unmap(sqlite3_file *file, int remove)
{
	return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static int bad_fetch(sqlite3_file *file, sqlite3_int64 at, int size, void **ret)
{
	return real_of(file)->pMethods->xFetch(real_of(file), at, size, ret);
}

/* A checkpoint lets go of what is mapped when it has read a header of the WAL's index that is new
 * to it, and has not acted upon it yet. */
static int bad_unfetch(sqlite3_file *file, sqlite3_int64 at, void *mapped)
{
	void (*hook)(void) = disk.checkpoint_begins;
	if (hook && !mapped && !((struct bad_file *)file)->wal)
		hook();
	return real_of(file)->pMethods->xUnfetch(real_of(file), at, mapped);
}

static int bad_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *ret_flags)
{
	struct bad_file *self = (struct bad_file *)file;
	(void)vfs;
	self->real = (sqlite3_file *)(self + 1);
	self->wal = (flags & SQLITE_OPEN_WAL) != 0;
	int rc = real_vfs->xOpen(real_vfs, name, self->real, flags, ret_flags);
	self->base.pMethods = self->real->pMethods ? &bad_methods : NULL;
	return rc;
}

void disk_wrap(void)
{
	real_vfs = sqlite3_vfs_find(NULL);
	bad_vfs = *real_vfs;
	bad_vfs.zName = "bad";
	bad_vfs.szOsFile = (int)sizeof(struct bad_file) + real_vfs->szOsFile;
	bad_vfs.xOpen = bad_open;
	bad_methods = (sqlite3_io_methods){
	    3,          bad_close,   bad_read,     bad_write,       bad_truncate,  bad_sync,
	    bad_size,   bad_lock,    bad_unlock,   bad_check,       bad_control,   bad_sector,
	    bad_device, bad_shm_map, bad_shm_lock, bad_shm_barrier, bad_shm_unmap, bad_fetch,
	    bad_unfetch};
	if (sqlite3_vfs_register(&bad_vfs, 1))
		abort();
}
