/* SPDX-License-Identifier: Apache-2.0 */
/* disk.h -- a file system under SQLite that fails when it is told to. */
#ifndef TEST_DISK_H
#define TEST_DISK_H

#include <stdbool.h>

/* A sync of a WAL fails after the bytes were written; a write finds the disk full. */
struct disk {
	_Atomic bool fail_wal_sync, full;
};
extern struct disk disk;

/* Wrap the default VFS: everything opened from here on is on this disk. */
void disk_wrap(void);

#endif
