/* SPDX-License-Identifier: Apache-2.0 */
/* wal_vfs.h -- a thin layer under the connections that write the WAL and that move it: it hands a
 * transaction's frames to the WAL in one write instead of two per page, and lets a checkpoint begin
 * under the writer lock only. */
#ifndef STORE_SQLITE_WAL_VFS_H
#define STORE_SQLITE_WAL_VFS_H

/* The name of the layer on top of what is the default VFS now, for sqlite3_open_v2. NULL, which
 * means the default itself, when there is no memory for it. */
const char *lite_wal_vfs(void);

/* Checkpoints of other programs don't have the help of this layer (V6), and with older libraries
 * they need it. */
enum { LITE_VERSION_SAFE = 3051003 };

#endif
