/* SPDX-License-Identifier: Apache-2.0 */
/* input.c -- read a payload from a file or the standard input, up to a cap. */
#include "base/json.h"
#include "cli/cli.h"
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 << 10 };

static bool is_stdin(const char *file)
{
	return !file || strcmp(file, "-") == 0;
}

const char *input_name(const char *file)
{
	return is_stdin(file) ? "-" : file;
}

static enum ibid_code refuse_errno(const char *file, struct ibid_err *err)
{
	int number = errno;
	if (number == EBADF && is_stdin(file))
		return err_set(err, IBID_INVALID, "-: the standard input is closed: give a file");
	enum ibid_code code = number == ENOENT   ? IBID_NOT_FOUND
	                      : number == EACCES ? IBID_DENIED
	                                         : IBID_IO;
	return err_set(err, code, "%s: it can't be read: %s", input_name(file), strerror(number));
}

static enum ibid_code open_file(const char *file, int *ret, struct ibid_err *err)
{
	struct stat stat;
	int fd = is_stdin(file) ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat) < 0)
		return refuse_errno(file, err);
	if (S_ISDIR(stat.st_mode)) {
		if (fd != STDIN_FILENO)
			close(fd);
		return err_set(err, IBID_INVALID,
		               "%s: it is a directory: give a file, or - for the standard input",
		               input_name(file));
	}
	if (isatty(fd) && !file)
		say("reading JSON from the terminal; end it with Ctrl-D");
	*ret = fd;
	return IBID_OK;
}

static enum ibid_code read_fd(int fd, const char *file, struct str *bytes, struct ibid_err *err)
{
	char chunk[CHUNK_BYTES];
	for (;;) {
		ssize_t got = read(fd, chunk, sizeof chunk);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return refuse_errno(file, err);
		if (got == 0)
			return IBID_OK;
		if (bytes->size + (size_t)got > bytes->cap)
			return err_set(err, IBID_LIMIT, "%s: it is larger than %d bytes", input_name(file),
			               JSON_BYTES_MAX);
		str_add(bytes, chunk, (size_t)got);
		if (bytes->failed)
			return err_set(err, IBID_NOMEM, "out of memory");
	}
}

enum ibid_code input_read(struct arena *arena, const char *file, const char **ret, size_t *ret_size,
                          struct ibid_err *err)
{
	struct str bytes = STR_INIT(JSON_BYTES_MAX);
	int fd = -1;
	enum ibid_code code = open_file(file, &fd, err);
	if (code)
		return code;
	code = read_fd(fd, file, &bytes, err);
	if (fd != STDIN_FILENO)
		close(fd);
	if (!code) {
		const char *copy = arena_strndup(arena, str_text(&bytes), bytes.size);
		if (copy) {
			*ret = copy;
			*ret_size = bytes.size;
		} else {
			code = err_set(err, IBID_NOMEM, "out of memory");
		}
	}
	str_release(&bytes);
	return code;
}
