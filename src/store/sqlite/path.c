/* SPDX-License-Identifier: Apache-2.0 */
/* path.c -- look before opening, only to say clearly what SQLite would call "unable to open
 * database file". Whether the file can be used is still decided by opening it. */
#include "store/sqlite/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum ibid_code from_errno(const char *path, int number, struct ibid_err *err)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR:
		return err_set(err, IBID_NOT_FOUND, "%s: no such file; create the store with ibid init",
		               path);
	case EACCES:
	case EPERM:
	case EROFS:
		return err_set(err, IBID_DENIED, "%s: no permission; check its owner and mode", path);
	case ENOMEM: return err_set(err, IBID_NOMEM, "out of memory");
	default: return err_set(err, IBID_IO, "%s: %s", path, strerror(number));
	}
}

/* "dir/pay.db" gives "dir", "pay.db" gives ".", "/pay.db" gives "/". Freed with free(). */
static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static enum ibid_code check_parent(const char *path, const char *parent, struct ibid_err *err)
{
	struct stat info;
	if (stat(parent, &info) != 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return err_set(err, IBID_NOT_FOUND, "%s: the directory %s does not exist; create it",
			               path, parent);
		return from_errno(parent, errno, err);
	}
	if (!S_ISDIR(info.st_mode))
		return err_set(err, IBID_NOT_FOUND, "%s: %s is not a directory", path, parent);
	/* WAL mode needs two more files beside the database. */
	if (faccessat(AT_FDCWD, parent, W_OK | X_OK, AT_EACCESS) != 0)
		return err_set(err, IBID_DENIED, "%s: no permission to write in the directory %s", path,
		               parent);
	return IBID_OK;
}

static enum ibid_code check_file(const char *path, bool create, struct ibid_err *err)
{
	struct stat info;
	if (stat(path, &info) != 0)
		return errno == ENOENT && create ? IBID_OK : from_errno(path, errno, err);
	if (S_ISDIR(info.st_mode))
		return err_set(err, IBID_IO, "%s is a directory; name the database file", path);
	if (!S_ISREG(info.st_mode))
		return err_set(err, IBID_IO, "%s is not a regular file; name the database file", path);
	if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
		return err_set(err, IBID_DENIED, "%s: no permission to read; check its owner and mode",
		               path);
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
		return err_set(err, IBID_DENIED, "%s: no permission to write; check its owner and mode",
		               path);
	return IBID_OK;
}

static enum ibid_code make_absolute(const char *path, const char *parent, char **ret,
                                    struct ibid_err *err)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char *directory = realpath(parent, NULL);
	char *absolute = NULL;
	if (!directory)
		return from_errno(parent, errno, err);
	if (asprintf(&absolute, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, name) < 0)
		absolute = NULL;
	free(directory);
	if (!absolute)
		return err_set(err, IBID_NOMEM, "out of memory");
	*ret = absolute;
	return IBID_OK;
}

enum ibid_code lite_path_resolve(const char *path, bool create, char **ret, struct ibid_err *err)
{
	size_t size = strlen(path);
	if (!size)
		return err_set(err, IBID_INVALID, "the store URL names no file; write sqlite:PATH");
	if (path[size - 1] == '/')
		return err_set(err, IBID_IO, "%s is a directory; name the database file", path);
	char *parent = parent_of(path);
	if (!parent)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = check_file(path, create, err);
	if (!code)
		code = check_parent(path, parent, err);
	if (!code)
		code = make_absolute(path, parent, ret, err);
	free(parent);
	return code;
}
