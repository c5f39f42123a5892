/* SPDX-License-Identifier: Apache-2.0 */
/* wal_vfs.h -- a thin layer under the writer's connection that hands a transaction's frames to the
 * WAL in one write instead of two per page. */
#ifndef STORE_SQLITE_WAL_VFS_H
#define STORE_SQLITE_WAL_VFS_H

/* The name of the layer on top of what is the default VFS now, for sqlite3_open_v2. NULL, which
 * means the default itself, when there is no memory for it. */
const char *lite_wal_vfs(void);

#endif
