/* SPDX-License-Identifier: Apache-2.0 */
/* ready.c -- could a command commit now?
 *
 * Only a write shows that there is room. One is tried where one failed before, where a commit of
 * unknown outcome waits to be settled, and where next to nothing is free; otherwise nothing is
 * written. */
#include "store/sqlite/lite.h"

#include <sys/statvfs.h>
#include <unistd.h>

enum {
	ROOM_MIN = 1 << 20,   /* some batches of commands */
	TRY_WAIT_US = 100000, /* for the writer: who holds it longer tells by its own commit */
};

/* Is next to nothing free? Some file systems do not say how large they are. */
static bool little_room(const struct lite_store *store)
{
	struct statvfs info;
	if (statvfs(store->path, &info) != 0 || !info.f_blocks)
		return false;
	uint64_t blocks = geteuid() == 0 ? info.f_bfree : info.f_bavail;
	return blocks < (ROOM_MIN + info.f_frsize - 1) / info.f_frsize;
}

static enum ibid_code try_to_write(struct lite_store *store, struct ibid_err *err)
{
	struct lite_conn *conn;
	enum ibid_code code = lite_write_begin(store, TRY_WAIT_US, &conn, err);
	return code ? code : lite_write_fence(store, conn, err);
}

enum ibid_code lite_ready(struct store *base, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	enum ibid_code code = lite_file_look(store, err);
	if (code)
		return code;
	bool little = little_room(store);
	if (!store->full && !store->stale && !little)
		return IBID_OK;
	code = try_to_write(store, err);
	bool busy = code == IBID_BUSY;
	if (busy && !store->stale)
		code = IBID_OK;
	if (!code && store->full && (busy || little))
		return err_set(err, IBID_FULL, "%s: next to no space is left on its disk; free some",
		               store->path);
	if (!code)
		store->full = false;
	return code;
}
