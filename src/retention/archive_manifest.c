/* SPDX-License-Identifier: Apache-2.0 */
/* archive_manifest.c -- what an archive says about itself. */
#include "base/instant.h"
#include "base/json.h"
#include "base/obj.h"
#include "retention/archive_file.h"
#include "retention/archive_io.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANIFEST_BYTES_MAX = 64 << 10, ARCHIVE_NAME_MAX = 200 };

static const char format_name[] = "ibid-events";

/* ---- Writing -------------------------------------------------------------------------------- */

static void add_part(struct str *out, const char *name, int64_t bytes, const struct sha256 *hash)
{
	char text[SHA256_TEXT_SIZE];
	sha256_write(hash, text);
	obj_begin(out, name, '{');
	obj_int(out, "bytes", bytes);
	obj_text(out, "sha256", text);
	obj_end(out, '}');
}

char *archive_manifest_text(const struct archive_manifest *manifest)
{
	struct str out = STR_INIT(MANIFEST_BYTES_MAX);
	char first[UUID_TEXT_SIZE], last[UUID_TEXT_SIZE], created[INSTANT_TEXT_SIZE];
	uuid_write(manifest->first_id, first);
	uuid_write(manifest->last_id, last);
	instant_write(manifest->created_us, created);
	obj_begin(&out, NULL, '{');
	obj_text(&out, "format", format_name);
	obj_int(&out, "format_version", manifest->format);
	obj_text(&out, "store", manifest->store);
	obj_text(&out, "system", manifest->system);
	obj_int(&out, "schema", manifest->schema);
	obj_begin(&out, "range", '{');
	obj_text(&out, "from", manifest->range_from);
	obj_text(&out, "to", manifest->range_to);
	obj_end(&out, '}');
	obj_text(&out, "file", manifest->file);
	obj_int(&out, "events", manifest->events);
	obj_int(&out, "deliveries", manifest->deliveries);
	obj_text(&out, "first_id", first);
	obj_text(&out, "last_id", last);
	add_part(&out, "compressed", manifest->bytes, &manifest->sha256);
	add_part(&out, "content", manifest->content_bytes, &manifest->content_sha256);
	obj_text(&out, "created_at", created);
	obj_end(&out, '}');
	str_addc(&out, '\n');
	if (out.failed) {
		str_release(&out);
		return NULL;
	}
	return str_take(&out, NULL);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *suffix)
{
	size_t size = strlen(text), tail = strlen(suffix);
	return size > tail && strcmp(text + size - tail, suffix) == 0;
}

/* The path of the manifest, from that of either. */
static const char *manifest_path(struct arena *arena, const char *path)
{
	if (!ends_with(path, ARCHIVE_SUFFIX))
		return path;
	return arena_printf(arena, "%.*s%s", (int)(strlen(path) - strlen(ARCHIVE_SUFFIX)), path,
	                    ARCHIVE_MANIFEST_SUFFIX);
}

static enum ibid_code read_text(struct arena *arena, const char *path, const char **ret,
                                size_t *ret_size, struct ibid_err *err)
{
	char *text = arena_alloc(arena, MANIFEST_BYTES_MAX);
	size_t size = 0;
	if (!text)
		return err_set(err, IBID_NOMEM, "out of memory");
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(err, IBID_NOT_FOUND,
		               "%s is not there: without its manifest an archive is not whole", path);
	if (fd < 0)
		return archive_failed(err, errno, "read", path);
	ssize_t got;
	while (size < MANIFEST_BYTES_MAX &&
	       (got = read(fd, text + size, MANIFEST_BYTES_MAX - size)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int number = errno;
			close(fd);
			return archive_failed(err, number, "read", path);
		}
		size += (size_t)got;
	}
	close(fd);
	*ret = text;
	*ret_size = size;
	return IBID_OK;
}

/* Members that are read: false once one was not as it must be. */
struct members {
	struct json *root;
	bool good;
};

static const char *get_text(struct members *members, const char *pointer)
{
	const struct json *value = json_at(members->root, pointer);
	if (!value || value->type != JSON_STRING || strlen(value->text) != value->size) {
		members->good = false;
		return "";
	}
	return value->text;
}

static int64_t get_int(struct members *members, const char *pointer)
{
	const struct json *value = json_at(members->root, pointer);
	char *end = NULL;
	errno = 0;
	int64_t number = value && value->type == JSON_NUMBER ? strtoll(value->text, &end, 10) : -1;
	if (!end || *end || errno || number < 0)
		members->good = false;
	return number;
}

static struct sha256 get_hash(struct members *members, const char *pointer)
{
	struct sha256 hash = {{0}};
	members->good &= sha256_read(get_text(members, pointer), &hash);
	return hash;
}

static struct uuid get_uuid(struct members *members, const char *pointer)
{
	struct uuid id = {{0}};
	members->good &= uuid_read(get_text(members, pointer), &id);
	return id;
}

static int64_t get_instant(struct members *members, const char *pointer)
{
	const char *text = get_text(members, pointer);
	int64_t us = 0;
	members->good &= instant_read(text, strlen(text), &us);
	return us;
}

static struct archive_manifest get_all(struct members *members)
{
	return (struct archive_manifest){
	    .format = get_int(members, "/format_version"),
	    .schema = get_int(members, "/schema"),
	    .store = get_text(members, "/store"),
	    .system = get_text(members, "/system"),
	    .range_from = get_text(members, "/range/from"),
	    .range_to = get_text(members, "/range/to"),
	    .file = get_text(members, "/file"),
	    .events = get_int(members, "/events"),
	    .deliveries = get_int(members, "/deliveries"),
	    .first_id = get_uuid(members, "/first_id"),
	    .last_id = get_uuid(members, "/last_id"),
	    .bytes = get_int(members, "/compressed/bytes"),
	    .content_bytes = get_int(members, "/content/bytes"),
	    .sha256 = get_hash(members, "/compressed/sha256"),
	    .content_sha256 = get_hash(members, "/content/sha256"),
	    .created_us = get_instant(members, "/created_at"),
	};
}

/* It lies beside its manifest, under its name. */
static const char *file_path(struct arena *arena, const char *manifest,
                             const struct archive_manifest *said)
{
	const char *slash = strrchr(manifest, '/');
	int size = slash ? (int)(slash + 1 - manifest) : 0;
	return arena_printf(arena, "%.*s%s", size, manifest, said->file);
}

enum ibid_code archive_manifest_read(struct arena *arena, const char *path,
                                     struct archive_manifest *ret, const char **ret_path,
                                     struct ibid_err *err)
{
	const char *text = NULL, *from = manifest_path(arena, path);
	size_t size = 0;
	struct ibid_err why;
	struct members members = {.good = true};
	enum ibid_code code = from ? read_text(arena, from, &text, &size, err)
	                           : err_set(err, IBID_NOMEM, "out of memory");
	if (code)
		return code;
	if (json_read(arena, text, size, MANIFEST_BYTES_MAX, &members.root, &why))
		return err_set(err, IBID_INVALID, "%s is damaged: %s", from, why.text);
	struct archive_manifest manifest = get_all(&members);
	if (strcmp(get_text(&members, "/format"), format_name) != 0 || !members.good ||
	    strchr(manifest.file, '/') || strlen(manifest.file) > ARCHIVE_NAME_MAX)
		return err_set(err, IBID_INVALID, "%s is not the manifest of an archive, or is damaged",
		               from);
	if (manifest.format != ARCHIVE_FORMAT)
		return err_set(err, IBID_INVALID, "%s is of format %lld, and this version of ibid reads %d",
		               from, (long long)manifest.format, ARCHIVE_FORMAT);
	*ret_path = file_path(arena, from, &manifest);
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	*ret = manifest;
	return IBID_OK;
}
