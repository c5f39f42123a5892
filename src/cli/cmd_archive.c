/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_archive.c -- archives of events: which there are, whether they are whole, and back. */
#include "retention/archive.h"

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/page.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMES_MAX = 1000000 };

/* ---- Paths ---------------------------------------------------------------------------------- */

struct paths {
	struct arena arena;
	const char **items;
	size_t count, room;
};

static void add_path(struct paths *paths, const char *path)
{
	if (paths->count == paths->room) {
		size_t room = paths->room ? 2 * paths->room : 16;
		const char **items = arena_array(&paths->arena, room, sizeof *items);
		if (items && paths->count)
			memcpy(items, paths->items, paths->count * sizeof *items);
		if (!items)
			return;
		paths->items = items;
		paths->room = room;
	}
	paths->items[paths->count++] = path;
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t size = strlen(name), tail = strlen(suffix);
	return size > tail && strcmp(name + size - tail, suffix) == 0;
}

/* The manifest that stands for this name of a directory: its own, or that of a file, which may be
 * missing. NULL: it is neither. Names that begin with a dot are of files that are under way. */
static const char *manifest_of(struct paths *paths, const char *dir, const char *name)
{
	if (*name == '.')
		return NULL;
	if (ends_with(name, ARCHIVE_MANIFEST_SUFFIX))
		return arena_printf(&paths->arena, "%s/%s", dir, name);
	if (!ends_with(name, ARCHIVE_SUFFIX))
		return NULL;
	return arena_printf(&paths->arena, "%s/%.*s%s", dir,
	                    (int)(strlen(name) - strlen(ARCHIVE_SUFFIX)), name,
	                    ARCHIVE_MANIFEST_SUFFIX);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each archive once, by its name: it has a file and a manifest, or one of them is missing. */
static void sort_once(struct paths *paths, size_t from)
{
	size_t kept = from;
	if (paths->count > from)
		qsort(paths->items + from, paths->count - from, sizeof *paths->items, by_name);
	for (size_t i = from; i < paths->count; i++)
		if (i == from || strcmp(paths->items[i], paths->items[kept - 1]) != 0)
			paths->items[kept++] = paths->items[i];
	paths->count = kept;
}

static enum ibid_code add_dir(struct paths *paths, const char *dir, struct ibid_err *err)
{
	size_t from = paths->count;
	DIR *list = opendir(dir);
	if (!list)
		return err_set(err, IBID_IO, "can't read the directory %s: %s", dir, strerror(errno));
	for (struct dirent *entry; (entry = readdir(list)) && paths->count < NAMES_MAX;) {
		const char *path = manifest_of(paths, dir, entry->d_name);
		if (path)
			add_path(paths, path);
	}
	closedir(list);
	sort_once(paths, from);
	return paths->arena.failed ? err_set(err, IBID_NOMEM, "out of memory") : IBID_OK;
}

static enum ibid_code add_operand(struct paths *paths, const char *operand, struct ibid_err *err)
{
	struct stat stat_;
	if (stat(operand, &stat_))
		return err_set(err, IBID_NOT_FOUND, "can't read %s: %s", operand, strerror(errno));
	if (S_ISDIR(stat_.st_mode))
		return add_dir(paths, operand, err);
	add_path(paths, operand);
	return paths->arena.failed ? err_set(err, IBID_NOMEM, "out of memory") : IBID_OK;
}

/* ---- list ----------------------------------------------------------------------------------- */

static int print_rows(struct arena *arena, const struct args *args, const struct archive_row *rows,
                      size_t count)
{
	static const char *const heads[] = {"FILE", "EVENTS", "DELIVERIES", "BYTES", "AT"};
	enum { COLUMNS = sizeof heads / sizeof *heads };
	struct table table = {.arena = arena, .heads = heads, .columns = COLUMNS, .painted = COLUMNS};
	bool ok = true;
	for (size_t i = 0; ok && i < count; i++) {
		const struct archive_row *row = &rows[i];
		if (args_has(args, OPT_JSON))
			ok = out_row(&archive_shape, row);
		else
			table_add(&table, (const char *[COLUMNS]){
			                      row->file, arena_printf(arena, "%lld", (long long)row->events),
			                      arena_printf(arena, "%lld", (long long)row->deliveries),
			                      arena_printf(arena, "%lld", (long long)row->bytes),
			                      time_text(arena, row->at_us)});
	}
	if (!count)
		say("no archives");
	else if (!args_has(args, OPT_JSON))
		table_print(&table);
	return ok ? CLI_OK : CLI_ERROR;
}

/* What has a manifest that can be read; the others are told of, and found by verify. */
static int list_dir(const struct args *args, const char *dir)
{
	struct paths paths = {0};
	struct ibid_err err = {0};
	int exit = CLI_OK;
	size_t count = 0;
	enum ibid_code code = add_dir(&paths, dir, &err);
	struct archive_row *rows = code ? NULL
	                                : arena_array(&paths.arena, paths.count + 1, sizeof *rows);
	for (size_t i = 0; rows && i < paths.count; i++) {
		struct archive_manifest manifest;
		const char *file = NULL;
		if (archive_manifest_read(&paths.arena, paths.items[i], &manifest, &file, &err))
			exit = say_err(&err);
		else
			rows[count++] = archive_row_of(&manifest, manifest.created_us);
	}
	if (code)
		exit = say_err(&err);
	else if (!rows)
		exit = say_no_memory();
	else if (print_rows(&paths.arena, args, rows, count))
		exit = CLI_ERROR;
	arena_release(&paths.arena);
	return exit;
}

static int list_store(const struct args *args, size_t limit)
{
	struct arena arena = {0};
	struct ibid_err err = {0};
	struct store *store = NULL;
	struct archive_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = open_store(args, false, true, &store, &err);
	if (!code)
		code = store_list_archives(store, &arena, limit, &rows, &count, &err);
	int exit = code ? say_err(&err) : print_rows(&arena, args, rows, count);
	store_close(store);
	arena_release(&arena);
	return exit;
}

int cmd_archive_list(const struct args *args)
{
	size_t limit;
	if (args->operand_count)
		return list_dir(args, args->operands[0]);
	if (!args_has(args, OPT_STORE))
		return usage_error(args->command,
		                   "which archives? name a directory, or a store by --store");
	int exit = read_limit(args, &limit);
	return exit ? exit : list_store(args, limit);
}

/* ---- verify --------------------------------------------------------------------------------- */

static enum ibid_code verify(struct arena *arena, const char *path,
                             struct archive_manifest *manifest, struct ibid_err *err)
{
	const char *file = NULL;
	enum ibid_code code = archive_manifest_read(arena, path, manifest, &file, err);
	return code ? code : archive_check(file, manifest, err);
}

static bool print_verdict(const struct args *args, const char *path,
                          const struct archive_manifest *manifest, const char *problem)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	bool ok = true;
	if (args_has(args, OPT_JSON)) {
		obj_begin(&out, NULL, '{');
		obj_text(&out, "path", path);
		obj_bool(&out, "whole", !problem);
		if (problem)
			obj_text(&out, "problem", problem);
		else
			obj_int(&out, "events", manifest->events);
		obj_end(&out, '}');
		ok = out_line(&out);
	} else if (problem) {
		out_textf("damaged     %s\n", problem);
	} else {
		out_textf("whole       %s  %lld event%s, %lld deliver%s\n", path,
		          (long long)manifest->events, plural(manifest->events),
		          (long long)manifest->deliveries, manifest->deliveries == 1 ? "y" : "ies");
	}
	str_release(&out);
	return ok;
}

int cmd_archive_verify(const struct args *args)
{
	struct paths paths = {0};
	struct ibid_err err = {0};
	enum ibid_code code = IBID_OK;
	int exit = CLI_OK;
	if (!args->operand_count)
		return usage_error(args->command, "which archives? name files, or a directory of them");
	for (size_t i = 0; !code && i < args->operand_count; i++)
		code = add_operand(&paths, args->operands[i], &err);
	for (size_t i = 0; !code && i < paths.count; i++) {
		struct arena arena = {0};
		struct archive_manifest manifest = {0};
		bool damaged = verify(&arena, paths.items[i], &manifest, &err);
		if (!print_verdict(args, paths.items[i], &manifest, damaged ? err.text : NULL))
			exit = CLI_ERROR;
		else if (damaged && !exit)
			exit = CLI_FOUND;
		arena_release(&arena);
	}
	if (!code && !paths.count)
		say("no archives");
	arena_release(&paths.arena);
	return code ? say_err(&err) : exit;
}

/* ---- restore -------------------------------------------------------------------------------- */

static bool print_restored(const struct args *args, const char *path,
                           const struct restore_count *count)
{
	struct str out = STR_INIT(OUTPUT_BYTES_MAX);
	bool ok = true;
	if (args_has(args, OPT_JSON)) {
		obj_begin(&out, NULL, '{');
		obj_text(&out, "path", path);
		obj_int(&out, "restored", count->restored);
		obj_int(&out, "present", count->present);
		obj_end(&out, '}');
		ok = out_line(&out);
	} else {
		out_textf("restored    %s  %lld event%s; already there: %lld\n", path,
		          (long long)count->restored, plural(count->restored), (long long)count->present);
	}
	str_release(&out);
	return ok;
}

int cmd_archive_restore(const struct args *args)
{
	struct ibid_err err = {0};
	struct store *store = NULL;
	bool ok = true;
	if (!args->operand_count)
		return usage_error(args->command, "which archives? name their files, *.ndjson.zst");
	enum ibid_code code = open_store(args, false, true, &store, &err);
	for (size_t i = 0; !code && ok && i < args->operand_count; i++) {
		struct restore_count count = {0};
		code = ledger_restore(store, args->operands[i], &count, &err);
		if (!code)
			ok = print_restored(args, args->operands[i], &count);
	}
	store_close(store);
	if (code)
		return say_err(&err);
	return ok ? CLI_OK : CLI_ERROR;
}
