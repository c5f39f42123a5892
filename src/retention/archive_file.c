/* SPDX-License-Identifier: Apache-2.0 */
/* archive_file.c -- write an archive so that it is there as a whole or not at all.
 *
 * The file is written under another name, synced, renamed, and its directory synced; then the same
 * for the manifest. (A1) The manifest is the last thing to appear: who has it has the whole. */
#include "retention/archive_file.h"
#include "retention/archive_io.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum { LEVEL = 6, OUT_BYTES = 128 << 10, NAME_SIZE = 192, NUMBERS_MAX = 10000 };

static const char unfinished[] = ".unfinished" ARCHIVE_SUFFIX;
static const char unfinished_manifest[] = ".unfinished" ARCHIVE_MANIFEST_SUFFIX;

enum ibid_code archive_failed(struct ibid_err *err, int number, const char *what, const char *path)
{
	enum ibid_code code = IBID_IO;
	if (number == ENOSPC || number == EDQUOT || number == EFBIG)
		code = IBID_FULL;
	else if (number == EACCES || number == EPERM || number == EROFS)
		code = IBID_DENIED;
	else if (number == ENOENT)
		code = IBID_NOT_FOUND;
	return err_set(err, code, "can't %s %s: %s", what, path, strerror(number));
}

/* ---- The directory -------------------------------------------------------------------------- */

struct archive_dir {
	int fd;
	char *path;
};

enum ibid_code archive_dir_open(const char *path, struct archive_dir **ret, struct ibid_err *err)
{
	if (mkdir(path, 0700) && errno != EEXIST)
		return archive_failed(err, errno, "make the directory", path);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return archive_failed(err, errno, "open the directory", path);
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		int number = errno;
		close(fd);
		if (number == EWOULDBLOCK)
			return err_set(err, IBID_BUSY, "another run is writing to %s: wait for it", path);
		return archive_failed(err, number, "lock the directory", path);
	}
	struct archive_dir *dir = calloc(1, sizeof *dir);
	char *copy = strdup(path);
	if (!dir || !copy) {
		free(dir);
		free(copy);
		close(fd);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	dir->fd = fd;
	dir->path = copy;
	*ret = dir;
	return IBID_OK;
}

void archive_dir_close(struct archive_dir *dir)
{
	if (!dir)
		return;
	close(dir->fd);
	free(dir->path);
	free(dir);
}

static enum ibid_code dir_failed(const struct archive_dir *dir, int number, const char *what,
                                 const char *name, struct ibid_err *err)
{
	char path[NAME_SIZE + 256];
	snprintf(path, sizeof path, "%s/%s", dir->path, name);
	return archive_failed(err, number, what, path);
}

/* A new file under its last name, for good. */
static enum ibid_code dir_rename(const struct archive_dir *dir, const char *from, const char *to,
                                 struct ibid_err *err)
{
	if (renameat(dir->fd, from, dir->fd, to) || fsync(dir->fd))
		return dir_failed(dir, errno, "write", to, err);
	return IBID_OK;
}

static enum ibid_code write_all(const struct archive_dir *dir, int fd, const char *name,
                                const char *bytes, size_t size, struct ibid_err *err)
{
	while (size) {
		ssize_t done = write(fd, bytes, size);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return dir_failed(dir, done < 0 ? errno : ENOSPC, "write", name, err);
		bytes += done;
		size -= (size_t)done;
	}
	return IBID_OK;
}

/* ---- The file ------------------------------------------------------------------------------- */

struct archive_writer {
	struct archive_dir *dir;
	int fd;
	ZSTD_CCtx *zstd;
	char *out;
	int64_t bytes, content_bytes;
	struct sha256_sum sum, content_sum;
	bool finished;
};

enum ibid_code archive_writer_open(struct archive_dir *dir, struct archive_writer **ret,
                                   struct ibid_err *err)
{
	struct archive_writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		return err_set(err, IBID_NOMEM, "out of memory");
	writer->dir = dir;
	writer->fd = -1;
	writer->out = malloc(OUT_BYTES);
	writer->zstd = ZSTD_createCCtx();
	if (!writer->out || !writer->zstd) {
		archive_writer_close(writer);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_checksumFlag, 1);
	sha256_init(&writer->sum);
	sha256_init(&writer->content_sum);
	/* What a run that was killed left behind is written over. */
	writer->fd = openat(dir->fd, unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
	                    0600);
	if (writer->fd < 0) {
		int number = errno;
		archive_writer_close(writer);
		return dir_failed(dir, number, "write", unfinished, err);
	}
	*ret = writer;
	return IBID_OK;
}

static enum ibid_code compress(struct archive_writer *writer, const char *bytes, size_t size,
                               bool end, struct ibid_err *err)
{
	ZSTD_inBuffer in = {bytes, size, 0};
	for (size_t left = 1; left || in.pos < in.size;) {
		ZSTD_outBuffer out = {writer->out, OUT_BYTES, 0};
		left = ZSTD_compressStream2(writer->zstd, &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return err_set(err, IBID_NOMEM, "can't compress: %s", ZSTD_getErrorName(left));
		enum ibid_code code = write_all(writer->dir, writer->fd, unfinished, writer->out, out.pos,
		                                err);
		if (code)
			return code;
		sha256_add(&writer->sum, writer->out, out.pos);
		writer->bytes += (int64_t)out.pos;
		if (!end)
			left = 0; /* what is left then comes with the next line */
	}
	return IBID_OK;
}

enum ibid_code archive_writer_add(struct archive_writer *writer, const char *line, size_t size,
                                  struct ibid_err *err)
{
	enum ibid_code code = compress(writer, line, size, false, err);
	if (!code)
		code = compress(writer, "\n", 1, false, err);
	sha256_add(&writer->content_sum, line, size);
	sha256_add(&writer->content_sum, "\n", 1);
	writer->content_bytes += (int64_t)size + 1;
	return code;
}

void archive_writer_close(struct archive_writer *writer)
{
	if (!writer)
		return;
	if (writer->fd >= 0) {
		close(writer->fd);
		if (!writer->finished)
			unlinkat(writer->dir->fd, unfinished, 0);
	}
	ZSTD_freeCCtx(writer->zstd);
	sha256_release(&writer->sum);
	sha256_release(&writer->content_sum);
	free(writer->out);
	free(writer);
}

/* ---- Its name, and what is there already ---------------------------------------------------- */

static void write_name(char ret[NAME_SIZE], const char *name, int number, const char *suffix)
{
	snprintf(ret, NAME_SIZE, "events-%s-%d%s", name, number, suffix);
}

/* An earlier run may have come so far and no further. */
static bool is_same(struct archive_dir *dir, struct arena *arena, const char *manifest_name,
                    const struct archive_manifest *wanted, struct archive_manifest *ret)
{
	struct ibid_err ignored;
	const char *file = NULL;
	const char *path = arena_printf(arena, "%s/%s", dir->path, manifest_name);
	return path && archive_manifest_read(arena, path, ret, &file, &ignored) == IBID_OK &&
	       ret->events == wanted->events && strcmp(ret->store, wanted->store) == 0 &&
	       memcmp(&ret->content_sha256, &wanted->content_sha256, sizeof wanted->content_sha256) ==
	           0 &&
	       archive_check(file, ret, &ignored) == IBID_OK;
}

/* The first number that has no manifest, unless one before it is the same. */
static enum ibid_code choose_number(struct archive_writer *writer, struct arena *arena,
                                    const char *name, struct archive_manifest *manifest,
                                    int *ret_number, bool *ret_reused, struct ibid_err *err)
{
	char manifest_name[NAME_SIZE];
	for (int number = 1; number < NUMBERS_MAX; number++) {
		struct archive_manifest there;
		write_name(manifest_name, name, number, ARCHIVE_MANIFEST_SUFFIX);
		if (faccessat(writer->dir->fd, manifest_name, F_OK, 0)) {
			*ret_number = number;
			*ret_reused = false;
			return IBID_OK;
		}
		if (is_same(writer->dir, arena, manifest_name, manifest, &there)) {
			*manifest = there;
			*ret_reused = true;
			return IBID_OK;
		}
	}
	return err_set(err, IBID_LIMIT, "%s has too many archives of %s", writer->dir->path, name);
}

static enum ibid_code write_manifest(struct archive_dir *dir, const char *name,
                                     const struct archive_manifest *manifest, struct ibid_err *err)
{
	char *text = archive_manifest_text(manifest);
	if (!text)
		return err_set(err, IBID_NOMEM, "out of memory");
	int fd = openat(dir->fd, unfinished_manifest,
	                O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	enum ibid_code code = fd < 0 ? dir_failed(dir, errno, "write", unfinished_manifest, err)
	                             : write_all(dir, fd, unfinished_manifest, text, strlen(text), err);
	if (!code && fsync(fd))
		code = dir_failed(dir, errno, "write", unfinished_manifest, err);
	if (fd >= 0)
		close(fd);
	free(text);
	return code ? code : dir_rename(dir, unfinished_manifest, name, err); /* A1 */
}

enum ibid_code archive_writer_finish(struct archive_writer *writer, struct arena *arena,
                                     const char *name, struct archive_manifest *manifest,
                                     bool *ret_reused, struct ibid_err *err)
{
	char file[NAME_SIZE], manifest_name[NAME_SIZE];
	int number = 0;
	bool reused = false;
	enum ibid_code code = compress(writer, NULL, 0, true, err);
	if (!code && fsync(writer->fd))
		code = dir_failed(writer->dir, errno, "write", unfinished, err);
	if (code)
		return code;
	manifest->bytes = writer->bytes;
	manifest->content_bytes = writer->content_bytes;
	manifest->sha256 = sha256_end(&writer->sum);
	manifest->content_sha256 = sha256_end(&writer->content_sum);
	code = choose_number(writer, arena, name, manifest, &number, &reused, err);
	if (code)
		return code;
	*ret_reused = reused;
	if (reused)
		return IBID_OK;
	write_name(file, name, number, ARCHIVE_SUFFIX);
	write_name(manifest_name, name, number, ARCHIVE_MANIFEST_SUFFIX);
	manifest->file = arena_strdup(arena, file);
	if (!manifest->file)
		return err_set(err, IBID_NOMEM, "out of memory");
	code = dir_rename(writer->dir, unfinished, file, err);
	writer->finished = !code;
	return code ? code : write_manifest(writer->dir, manifest_name, manifest, err);
}

void archive_discard(struct archive_dir *dir, const struct archive_manifest *manifest)
{
	char name[NAME_SIZE];
	size_t size = strlen(manifest->file) - strlen(ARCHIVE_SUFFIX);
	snprintf(name, sizeof name, "%.*s%s", (int)size, manifest->file, ARCHIVE_MANIFEST_SUFFIX);
	unlinkat(dir->fd, name, 0); /* A1: first */
	fsync(dir->fd);
	unlinkat(dir->fd, manifest->file, 0);
}
