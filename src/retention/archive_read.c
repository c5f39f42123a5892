/* SPDX-License-Identifier: Apache-2.0 */
/* archive_read.c -- read an archive, and believe nothing that its manifest does not confirm. */
#include "base/json.h"
#include "base/str.h"
#include "retention/archive_file.h"
#include "retention/archive_io.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum {
	IN_BYTES = 128 << 10,
	OUT_BYTES = 256 << 10,
	LINE_BYTES_MAX = 64 << 20,
	WINDOW_LOG_MAX = 27
};

struct archive_reader {
	const struct archive_manifest *manifest;
	char *path;
	int fd;
	ZSTD_DCtx *zstd;
	char *in, *out;
	ZSTD_inBuffer input;
	size_t out_at, out_size; /* what of `out` is left */
	size_t hint;             /* 0: the last frame has ended */
	bool at_end;
	struct str line;
	struct arena arena; /* of the line that is looked at */
	int64_t bytes, content_bytes, events, deliveries;
	struct uuid first_id, last_id;
	struct sha256_sum sum, content_sum;
};

static enum ibid_code damaged(const struct archive_reader *reader, const char *why,
                              struct ibid_err *err)
{
	return err_set(err, IBID_INVALID, "%s is damaged: %s", reader->path, why);
}

enum ibid_code archive_reader_open(const char *path, const struct archive_manifest *manifest,
                                   struct archive_reader **ret, struct ibid_err *err)
{
	struct archive_reader *reader = calloc(1, sizeof *reader);
	if (!reader)
		return err_set(err, IBID_NOMEM, "out of memory");
	*reader = (struct archive_reader){
	    .manifest = manifest,
	    .path = strdup(path),
	    .fd = -1,
	    .zstd = ZSTD_createDCtx(),
	    .in = malloc(IN_BYTES),
	    .out = malloc(OUT_BYTES),
	    .hint = 1,
	    .line = STR_INIT(LINE_BYTES_MAX),
	};
	reader->input.src = reader->in;
	if (!reader->path || !reader->zstd || !reader->in || !reader->out) {
		archive_reader_close(reader);
		return err_set(err, IBID_NOMEM, "out of memory");
	}
	ZSTD_DCtx_setParameter(reader->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	sha256_init(&reader->sum);
	sha256_init(&reader->content_sum);
	reader->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (reader->fd < 0) {
		int number = errno;
		archive_reader_close(reader);
		return archive_failed(err, number, "read", path);
	}
	*ret = reader;
	return IBID_OK;
}

void archive_reader_close(struct archive_reader *reader)
{
	if (!reader)
		return;
	if (reader->fd >= 0)
		close(reader->fd);
	ZSTD_freeDCtx(reader->zstd);
	sha256_release(&reader->sum);
	sha256_release(&reader->content_sum);
	str_release(&reader->line);
	arena_release(&reader->arena);
	free(reader->in);
	free(reader->out);
	free(reader->path);
	free(reader);
}

/* ---- Bytes ---------------------------------------------------------------------------------- */

static enum ibid_code read_more(struct archive_reader *reader, struct ibid_err *err)
{
	ssize_t got;
	do
		got = read(reader->fd, reader->in, IN_BYTES);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return archive_failed(err, errno, "read", reader->path);
	reader->at_end = got == 0;
	sha256_add(&reader->sum, reader->in, (size_t)got);
	reader->bytes += got;
	reader->input.size = (size_t)got;
	reader->input.pos = 0;
	return IBID_OK;
}

/* Some content into `out`; none only at the end of the file. */
static enum ibid_code decompress(struct archive_reader *reader, struct ibid_err *err)
{
	reader->out_at = reader->out_size = 0;
	while (!reader->out_size) {
		enum ibid_code code = reader->input.pos == reader->input.size ? read_more(reader, err)
		                                                              : IBID_OK;
		if (code || (reader->at_end && !reader->hint))
			return code;
		ZSTD_outBuffer out = {reader->out, OUT_BYTES, 0};
		size_t before = reader->input.pos;
		reader->hint = ZSTD_decompressStream(reader->zstd, &out, &reader->input);
		if (ZSTD_isError(reader->hint))
			return damaged(reader, ZSTD_getErrorName(reader->hint), err);
		if (reader->at_end && !out.pos && before == reader->input.pos)
			return damaged(reader, "it ends too early", err);
		reader->out_size = out.pos;
	}
	sha256_add(&reader->content_sum, reader->out, reader->out_size);
	reader->content_bytes += (int64_t)reader->out_size;
	return IBID_OK;
}

/* ---- Lines ---------------------------------------------------------------------------------- */

static enum ibid_code check_line(struct archive_reader *reader, struct ibid_err *err)
{
	struct json *root = NULL;
	struct ibid_err why;
	struct uuid id;
	arena_release(&reader->arena);
	if (json_read(&reader->arena, str_text(&reader->line), reader->line.size, LINE_BYTES_MAX, &root,
	              &why))
		return damaged(reader, why.text, err);
	const struct json *name = json_member(root, "id"), *tenant = json_member(root, "tenant");
	const struct json *deliveries = json_member(root, "deliveries");
	const struct json *holds = json_member(root, "holds");
	if (!name || name->type != JSON_STRING || !uuid_read(name->text, &id) || !tenant ||
	    tenant->type != JSON_STRING || !deliveries || deliveries->type != JSON_ARRAY || !holds ||
	    holds->type != JSON_ARRAY)
		return damaged(reader, "a line of it is no event", err);
	if (!reader->events || memcmp(&id, &reader->first_id, sizeof id) < 0)
		reader->first_id = id;
	if (!reader->events || memcmp(&id, &reader->last_id, sizeof id) > 0)
		reader->last_id = id;
	reader->events++;
	reader->deliveries += (int64_t)deliveries->size;
	return IBID_OK;
}

static enum ibid_code check_whole(struct archive_reader *reader, struct ibid_err *err)
{
	const struct archive_manifest *said = reader->manifest;
	struct sha256 hash = sha256_end(&reader->sum), content = sha256_end(&reader->content_sum);
	sha256_init(&reader->sum);
	sha256_init(&reader->content_sum);
	if (reader->bytes != said->bytes || memcmp(&hash, &said->sha256, sizeof hash) != 0)
		return damaged(reader, "its bytes are not those that its manifest tells of", err);
	if (reader->content_bytes != said->content_bytes ||
	    memcmp(&content, &said->content_sha256, sizeof content) != 0)
		return damaged(reader, "its content is not that which its manifest tells of", err);
	if (reader->events != said->events || reader->deliveries != said->deliveries)
		return err_set(err, IBID_INVALID,
		               "%s has %lld events and %lld deliveries, and its manifest tells of %lld and "
		               "%lld",
		               reader->path, (long long)reader->events, (long long)reader->deliveries,
		               (long long)said->events, (long long)said->deliveries);
	if (memcmp(&reader->first_id, &said->first_id, sizeof hash.bytes / 2) != 0 ||
	    memcmp(&reader->last_id, &said->last_id, sizeof hash.bytes / 2) != 0)
		return damaged(reader, "its first or last event is not that which its manifest names", err);
	return IBID_OK;
}

enum ibid_code archive_reader_next(struct archive_reader *reader, const char **ret,
                                   size_t *ret_size, struct ibid_err *err)
{
	str_clear(&reader->line);
	for (;;) {
		enum ibid_code code = reader->out_at == reader->out_size ? decompress(reader, err)
		                                                         : IBID_OK;
		if (code)
			return code;
		const char *from = reader->out + reader->out_at;
		size_t left = reader->out_size - reader->out_at;
		if (!left && reader->line.size)
			return damaged(reader, "its last line is cut off", err);
		*ret_size = 0;
		if (!left)
			return check_whole(reader, err);
		const char *end = memchr(from, '\n', left);
		str_add(&reader->line, from, end ? (size_t)(end - from) : left);
		reader->out_at += end ? (size_t)(end - from) + 1 : left;
		if (reader->line.failed)
			return damaged(reader, "a line of it is too long", err);
		if (!end)
			continue;
		code = check_line(reader, err);
		*ret = str_text(&reader->line);
		*ret_size = reader->line.size;
		return code;
	}
}

enum ibid_code archive_check(const char *path, const struct archive_manifest *manifest,
                             struct ibid_err *err)
{
	struct archive_reader *reader = NULL;
	const char *line = NULL;
	size_t size = 1;
	enum ibid_code code = archive_reader_open(path, manifest, &reader, err);
	while (!code && reader && size)
		code = archive_reader_next(reader, &line, &size, err);
	archive_reader_close(reader);
	return code;
}
