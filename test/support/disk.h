/* SPDX-License-Identifier: Apache-2.0 */
/* disk.h -- a file system under SQLite that fails when it is told to. */
#ifndef TEST_DISK_H
#define TEST_DISK_H

#include <stdbool.h>

/* A sync of a WAL, or of a database, fails after the bytes were written; a write finds the disk
 * full when half of it is written; the next write to a WAL is cut in half. */
struct disk {
	_Atomic bool fail_wal_sync, fail_file_sync, full, cut_wal_write;
	_Atomic unsigned wal_writes; /* so far, and the longest */
	_Atomic int wal_write_longest;
	void (*_Atomic checkpoint_begins)(void); /* called when one has read where the WAL ends */
};
extern struct disk disk;

/* Wrap the default VFS: everything opened from here on is on this disk. */
void disk_wrap(void);

#endif
