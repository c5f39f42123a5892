/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c -- one connection moves the WAL into the file, after a commit has released the
 * writer.
 *
 * PASSIVE never waits for readers or writers and never makes them wait; what it leaves, the next
 * one takes. */
#include "store/sqlite/lite.h"

enum { CHECKPOINT_PAGES = 4000 };

/* While a reader holds on to old pages the WAL can't be moved as a whole; trying after every commit
 * would sync the file each time. */
static bool due(struct lite_store *store)
{
	int pages = atomic_load(&store->wal_pages);
	if (pages < store->left_at)
		store->left_at = 0; /* another process moved it and the WAL began anew */
	return pages - store->left_at >= CHECKPOINT_PAGES;
}

static void checkpoint(struct lite_store *store)
{
	int pages = 0, moved = 0;
	int rc = sqlite3_wal_checkpoint_v2(store->checkpointer->db, NULL, SQLITE_CHECKPOINT_PASSIVE,
	                                   &pages, &moved);
	store->left_at = !rc && moved < pages ? pages : 0;
	/* The commits are safe in the WAL; what failed is tried again after the next one. */
	if (rc && rc != SQLITE_BUSY)
		LOG(&store->log, IBID_LOG_WARN, "store.checkpoint_failed",
		    {"reason", log_text(sqlite3_errmsg(store->checkpointer->db))});
}

void lite_checkpoint_when_due(struct lite_store *store)
{
	if (atomic_load(&store->wal_pages) < CHECKPOINT_PAGES)
		return;
	if (pthread_mutex_trylock(&store->checkpoint_lock) != 0)
		return;
	if (due(store))
		checkpoint(store);
	pthread_mutex_unlock(&store->checkpoint_lock);
}

enum ibid_code lite_checkpoint(struct lite_store *store, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	pthread_mutex_lock(&store->checkpoint_lock);
	int rc = sqlite3_wal_checkpoint_v2(store->checkpointer->db, NULL, SQLITE_CHECKPOINT_FULL, NULL,
	                                   NULL);
	if (rc)
		code = lite_fail(store->checkpointer, rc, err);
	pthread_mutex_unlock(&store->checkpoint_lock);
	return code;
}

void lite_checkpoint_truncate(struct lite_store *store)
{
	pthread_mutex_lock(&store->checkpoint_lock);
	(void)sqlite3_wal_checkpoint_v2(store->checkpointer->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
	                                NULL);
	pthread_mutex_unlock(&store->checkpoint_lock);
}
