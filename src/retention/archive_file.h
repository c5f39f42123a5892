/* SPDX-License-Identifier: Apache-2.0 */
/* archive_file.h -- an archive on disk: lines of JSON, compressed, and a manifest that says what
 * they are.
 *
 * A file counts only once its manifest is there, which is written last: whatever a crash leaves
 * behind is not taken for a whole archive. See docs/archive.md. */
#ifndef RETENTION_ARCHIVE_FILE_H
#define RETENTION_ARCHIVE_FILE_H

#include "base/arena.h"
#include "base/env.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/id.h"

#include <stdbool.h>

enum { ARCHIVE_FORMAT = 1 };
#define ARCHIVE_SUFFIX          ".ndjson.zst"
#define ARCHIVE_MANIFEST_SUFFIX ".manifest.json"

struct archive_manifest {
	int64_t format, schema;
	const char *store, *system; /* "sqlite" or "postgres"; system "": unknown */
	const char *range_from, *range_to;
	const char *file; /* its name; it lies beside the manifest */
	int64_t events, deliveries;
	struct uuid first_id, last_id; /* the least and the greatest */
	int64_t bytes, content_bytes;  /* compressed, and not */
	struct sha256 sha256, content_sha256;
	int64_t created_us;
};

/* ---- Writing -------------------------------------------------------------------------------- */

/* The directory, made where it is missing (mode 700), and this process's own while it is open:
 * IBID_BUSY. */
struct archive_dir;
IBID_CHECK enum ibid_code archive_dir_open(const char *path, struct archive_dir **ret,
                                           struct ibid_err *err);
void archive_dir_close(struct archive_dir *dir); /* takes NULL */

/* A file under way; nothing of it counts before it is finished. */
struct archive_writer;
IBID_CHECK enum ibid_code archive_writer_open(struct archive_dir *dir, struct archive_writer **ret,
                                              struct ibid_err *err);
IBID_CHECK enum ibid_code archive_writer_add(struct archive_writer *writer, const char *line,
                                             size_t size, struct ibid_err *err);
/* Make it durable as "events-<name>-<n>". `manifest` is what the caller knows (from `format` to
 * `deliveries` and the ids, without `file`); the rest is filled in. Where the same content is there
 * already, whole, that is what counts (`*ret_reused`), and this file goes. */
IBID_CHECK enum ibid_code archive_writer_finish(struct archive_writer *writer, struct arena *arena,
                                                const char *name, struct archive_manifest *manifest,
                                                bool *ret_reused, struct ibid_err *err);
void archive_writer_close(struct archive_writer *writer); /* takes NULL; an unfinished file goes */

/* Take back a file that was finished and is of no use: what it holds was not removed. */
void archive_discard(struct archive_dir *dir, const struct archive_manifest *manifest);

/* ---- Reading -------------------------------------------------------------------------------- */

/* By the path of the file or of its manifest. `*ret_path`: of the file. IBID_INVALID: damaged. */
IBID_CHECK enum ibid_code archive_manifest_read(struct arena *arena, const char *path,
                                                struct archive_manifest *ret, const char **ret_path,
                                                struct ibid_err *err);

/* The lines of a file. The last call, which gives none (size 0), is IBID_INVALID unless all that
 * was read is what the manifest says; so is any call that meets damage. */
struct archive_reader;
IBID_CHECK enum ibid_code archive_reader_open(const char *path, const struct archive_manifest *,
                                              struct archive_reader **ret, struct ibid_err *err);
IBID_CHECK enum ibid_code archive_reader_next(struct archive_reader *reader, const char **ret,
                                              size_t *ret_size, struct ibid_err *err);
void archive_reader_close(struct archive_reader *reader); /* takes NULL */

/* Read all of it: digests, counts, every line. */
IBID_CHECK enum ibid_code archive_check(const char *path, const struct archive_manifest *manifest,
                                        struct ibid_err *err);

#endif
