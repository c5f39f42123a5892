/* SPDX-License-Identifier: Apache-2.0 */
/* file_gone.c -- does the store's path still lead to the file that is open?
 *
 * SQLite writes on into a file that was deleted, renamed or replaced, and nobody who opens the path
 * later reads that. Device and inode are compared with those that were opened.
 *
 * (F1) A commit reports success only if the path led to the open file after it.
 * (F2) What was seen once stays so until the store is opened anew: a connection may have been
 * opened on another file meanwhile. */
#include "store/sqlite/lite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *const endings[LITE_FILES] = {"", "-wal", "-shm"};

#define ADVICE                                                                                     \
	"what a command wrote since is not there: put the right file in its place and start ibid "     \
	"again"

static const char *const stories[LITE_FILES][2] = {
    {" was deleted or renamed while ibid had it open; " ADVICE,
     " was replaced by another file while ibid had it open; " ADVICE},
    {"-wal was deleted or renamed while ibid had it open: stop every process that uses the store, "
     "and "
     "start ibid again",
     "-wal was replaced by another file while ibid had it open: stop every process that uses the "
     "store, and start ibid again"},
    {"-shm was deleted or renamed while ibid had it open: stop every process that uses the store, "
     "and "
     "start ibid again",
     "-shm was replaced by another file while ibid had it open: stop every process that uses the "
     "store, and start ibid again"},
};

static enum ibid_code tell(const struct lite_store *store, const char *story, struct ibid_err *err)
{
	return err_set(err, IBID_GONE, "%s%s", store->path, story);
}

/* Where the path can't be asked for another reason, nothing is known. */
static enum ibid_code compare(struct lite_store *store, size_t at, struct ibid_err *err)
{
	const struct lite_file *file = &store->files.opened[at];
	struct stat info;
	if (!file->name)
		return IBID_OK;
	bool there = stat(file->name, &info) == 0;
	if (there ? info.st_dev == file->device && info.st_ino == file->inode
	          : errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		return IBID_OK;
	const char *known = NULL;
	if (atomic_compare_exchange_strong(&store->files.gone, &known, stories[at][there]))
		known = stories[at][there];
	return tell(store, known, err);
}

enum ibid_code lite_file_noted(struct lite_store *store, struct ibid_err *err)
{
	const char *story = atomic_load(&store->files.gone);
	return story ? tell(store, story, err) : IBID_OK;
}

enum ibid_code lite_file_check(struct lite_store *store, struct ibid_err *err)
{
	enum ibid_code code = lite_file_noted(store, err);
	return code ? code : compare(store, 0, err);
}

enum ibid_code lite_file_look(struct lite_store *store, struct ibid_err *err)
{
	enum ibid_code code = lite_file_noted(store, err);
	for (size_t i = 0; !code && i < LITE_FILES; i++)
		code = compare(store, i, err);
	return code;
}

/* Is it this file that a connection was opened on, just now? */
static enum ibid_code check_opened(struct lite_store *store, sqlite3 *db, struct ibid_err *err)
{
	int moved = 0;
	enum ibid_code code = lite_file_check(store, err);
	sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
	if (code || !moved)
		return code;
	atomic_store(&store->files.gone, stories[0][1]);
	return lite_file_noted(store, err);
}

enum ibid_code lite_file_connect(struct lite_store *store, const struct lite_conn_options *options,
                                 struct lite_conn **ret, struct ibid_err *err)
{
	struct lite_conn *conn = NULL;
	struct ibid_err own = {0};
	enum ibid_code code = lite_conn_open(options, &conn, &own);
	if (!code)
		code = check_opened(store, conn->db, &own);
	else if (lite_file_check(store, err)) /* then that is the reason */
		return IBID_GONE;
	if (code) {
		lite_conn_close(conn);
		*err = own;
	} else {
		*ret = conn;
	}
	return code;
}

enum ibid_code lite_file_remember(struct lite_store *store, bool wal, struct ibid_err *err)
{
	for (size_t i = 0; i < (wal ? LITE_FILES : 1); i++) {
		struct lite_file *file = &store->files.opened[i];
		struct stat info;
		if (asprintf(&file->name, "%s%s", store->path, endings[i]) < 0) {
			file->name = NULL;
			return err_set(err, IBID_NOMEM, "out of memory");
		}
		if (stat(file->name, &info) == 0) {
			file->device = info.st_dev;
			file->inode = info.st_ino;
		} else {
			free(file->name);
			file->name = NULL;
		}
	}
	return check_opened(store, store->checkpointer->db, err);
}

void lite_file_release(struct lite_store *store)
{
	for (size_t i = 0; i < LITE_FILES; i++)
		free(store->files.opened[i].name);
}
