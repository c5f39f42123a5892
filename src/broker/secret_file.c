/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum ibid_code check_file(int fd, const char *file, struct ibid_err *err)
{
	struct stat stat;
	if (fstat(fd, &stat) != 0)
		return err_set(err, IBID_IO, "%s: %s", file, strerror(errno));
	if (!S_ISREG(stat.st_mode))
		return err_set(err, IBID_INVALID, "%s is not a file", file);
	if (stat.st_mode & 077)
		return err_set(err, IBID_DENIED, "%s is open to others than its owner: chmod 600 it", file);
	if (stat.st_size >= SECRET_FILE_SIZE)
		return err_set(err, IBID_INVALID, "%s is longer than %d bytes", file, SECRET_FILE_SIZE - 1);
	return IBID_OK;
}

enum ibid_code secret_file_read(const char *file, char ret[SECRET_FILE_SIZE], struct ibid_err *err)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT
		           ? err_set(err, IBID_INVALID, "there is no file %s", file)
		           : err_set(err, IBID_DENIED, "%s can't be opened: %s", file, strerror(errno));
	enum ibid_code code = check_file(fd, file, err);
	if (!code) {
		ssize_t got = read(fd, ret, SECRET_FILE_SIZE - 1);
		if (got < 0)
			code = err_set(err, IBID_IO, "%s: %s", file, strerror(errno));
		else
			ret[got] = 0;
	}
	close(fd);
	return code;
}
