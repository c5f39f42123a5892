/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c -- events that have had their time: archived, then removed; and brought back.
 *
 * (A2) Nothing is dropped before its archive is durable, manifest and all.
 * (A3) What is dropped is what was archived: the store compares. A file whose events changed before
 *      they could be dropped is thrown away, and they are archived anew. */
#include "retention/archive.h"

#include <assert.h>
#include <string.h>

enum { TURNS_MAX = 20 }; /* of one span that changes all the time */

void archive_report_release(struct archive_report *report)
{
	arena_release(&report->arena);
	*report = (struct archive_report){0};
}

/* One more in an array of the report; NULL without memory. */
static void *add_row(struct arena *arena, void **items, size_t *count, size_t *room, size_t size)
{
	if (*count == *room) {
		size_t more = *room ? 2 * *room : 8;
		void *grown = arena_array(arena, more, size);
		if (!grown)
			return NULL;
		if (*count)
			memcpy(grown, *items, *count * size);
		*items = grown;
		*room = more;
	}
	return (char *)*items + (*count)++ * size;
}

/* One run. */
struct run {
	struct store *store;
	struct env *env;
	const struct archive_options *options;
	struct archive_dir *dir; /* NULL: none is written */
	struct archive_report *report;
};

/* ---- What stays ----------------------------------------------------------------------------- */

static struct held_back *find_held(struct archive_report *report, const char *span,
                                   const struct undone_row *undone)
{
	for (size_t i = 0; i < report->held_count; i++) {
		struct held_back *held = &report->held[i];
		if (strcmp(held->span, span) == 0 &&
		    strcmp(held->undone.destination, undone->destination) == 0 &&
		    strcmp(held->undone.state, undone->state) == 0)
			return held;
	}
	return NULL;
}

static enum ibid_code note_undone(struct archive_report *report, const struct archive_span *span,
                                  struct ibid_err *err)
{
	const char *name = span->held ? span->name : "";
	for (size_t i = 0; i < span->undone_count; i++) {
		const struct undone_row *undone = &span->undone[i];
		struct held_back *held = find_held(report, name, undone);
		if (held) {
			held->undone.events += undone->events;
			if (undone->since_us < held->undone.since_us)
				held->undone.since_us = undone->since_us;
			continue;
		}
		held = add_row(&report->arena, (void **)&report->held, &report->held_count,
		               &report->held_room, sizeof *held);
		if (!held)
			return err_set(err, IBID_NOMEM, "out of memory");
		*held = (struct held_back){
		    .span = arena_strdup(&report->arena, name),
		    .undone = {.destination = arena_strdup(&report->arena, undone->destination),
		               .state = arena_strdup(&report->arena, undone->state),
		               .events = undone->events,
		               .since_us = undone->since_us},
		};
	}
	return report->arena.failed ? err_set(err, IBID_NOMEM, "out of memory") : IBID_OK;
}

/* ---- What goes ------------------------------------------------------------------------------ */

/* Lines on their way into a file. */
struct writing {
	struct run *run;
	struct archive_writer *writer; /* NULL: none is written; so is: */
	bool to_file;
	struct archive_manifest manifest;
};

static enum ibid_code write_line(void *user, const struct archive_line *line, struct ibid_err *err)
{
	struct writing *writing = user;
	struct archive_manifest *manifest = &writing->manifest;
	const struct archive_options *options = writing->run->options;
	if (!manifest->events || memcmp(&line->id, &manifest->first_id, sizeof line->id) < 0)
		manifest->first_id = line->id;
	if (!manifest->events || memcmp(&line->id, &manifest->last_id, sizeof line->id) > 0)
		manifest->last_id = line->id;
	manifest->events++;
	manifest->deliveries += line->deliveries;
	if (options->progress && manifest->events % 1000 == 0)
		options->progress(options->user, writing->run->report->events + manifest->events);
	return writing->writer ? archive_writer_add(writing->writer, line->text, line->size, err)
	                       : IBID_OK;
}

struct archive_row archive_row_of(const struct archive_manifest *manifest, int64_t at_us)
{
	return (struct archive_row){
	    .at_us = at_us,
	    .file = manifest->file,
	    .range_from = manifest->range_from,
	    .range_to = manifest->range_to,
	    .first_id = manifest->first_id,
	    .last_id = manifest->last_id,
	    .events = manifest->events,
	    .deliveries = manifest->deliveries,
	    .bytes = manifest->bytes,
	    .sha256 = manifest->sha256,
	    .content_sha256 = manifest->content_sha256,
	};
}

/* Read it, and write it where it is to be written. */
static enum ibid_code write_span(struct run *run, const struct archive_span *span,
                                 struct writing *writing, struct archive_seal *ret_seal,
                                 bool *ret_reused, struct ibid_err *err)
{
	struct arena *arena = &run->report->arena;
	writing->manifest = (struct archive_manifest){
	    .format = ARCHIVE_FORMAT,
	    .schema = STORE_SCHEMA,
	    .store = span->store,
	    .system = arena_strdup(arena, span->system),
	    .range_from = arena_strdup(arena, span->from),
	    .range_to = arena_strdup(arena, span->to),
	    .created_us = env_wall_us(run->env),
	};
	enum ibid_code code = arena->failed ? err_set(err, IBID_NOMEM, "out of memory") : IBID_OK;
	/* A month without events leaves nothing to keep. */
	if (!code && run->dir && span->events)
		code = archive_writer_open(run->dir, &writing->writer, err);
	if (!code)
		code = run->store->ops->read_span(run->store, span, write_line, writing, ret_seal, err);
	/* Another run may have been faster: then nothing is left to keep, either. */
	bool keeps = !code && writing->writer && writing->manifest.events;
	if (keeps)
		code = archive_writer_finish(writing->writer, arena, span->name, &writing->manifest,
		                             ret_reused, err);
	archive_writer_close(writing->writer);
	writing->to_file = keeps;
	writing->writer = NULL;
	return code;
}

static enum ibid_code note_gone(struct run *run, const struct writing *writing,
                                struct ibid_err *err)
{
	struct archive_report *report = run->report;
	report->events += writing->manifest.events;
	if (!writing->to_file)
		return IBID_OK;
	struct archive_manifest *row = add_row(&report->arena, (void **)&report->archives,
	                                       &report->archive_count, &report->archive_room,
	                                       sizeof *row);
	if (!row)
		return err_set(err, IBID_NOMEM, "out of memory");
	*row = writing->manifest;
	return IBID_OK;
}

/* IBID_RETRY: it has changed. */
static enum ibid_code remove_once(struct run *run, const struct archive_span *span,
                                  struct ibid_err *err)
{
	struct writing writing = {.run = run};
	struct archive_seal seal;
	bool reused = false;
	enum ibid_code code = write_span(run, span, &writing, &seal, &reused, err);
	if (code)
		return code;
	struct archive_row row = archive_row_of(&writing.manifest, env_wall_us(run->env));
	code = run->store->ops->drop_span(run->store, span, &seal, writing.to_file ? &row : NULL,
	                                  err); /* A2, A3 */
	if (code == IBID_RETRY && writing.to_file && !reused)
		archive_discard(run->dir, &writing.manifest);
	return code ? code : note_gone(run, &writing, err);
}

static enum ibid_code remove_span(struct run *run, struct archive_span *span, struct ibid_err *err)
{
	enum ibid_code code = IBID_RETRY;
	for (int turn = 0; code == IBID_RETRY && turn < TURNS_MAX; turn++)
		code = remove_once(run, span, err);
	if (code == IBID_RETRY) {
		struct ibid_err why = *err;
		code = err_set(err, IBID_BUSY, "%s: run it again", why.text);
	}
	return code;
}

static enum ibid_code take_span(struct run *run, struct archive_span *span, struct ibid_err *err)
{
	enum ibid_code code = note_undone(run->report, span, err);
	bool empty_rows = !span->events && strcmp(span->store, "sqlite") == 0;
	if (code || span->held || empty_rows)
		return code;
	if (run->options->dry_run) {
		run->report->events += span->events;
		return IBID_OK;
	}
	code = remove_span(run, span, err);
	if (!code && run->options->progress)
		run->options->progress(run->options->user, run->report->events);
	return code;
}

static enum ibid_code take_all(struct run *run, struct ibid_err *err)
{
	const struct archive_options *options = run->options;
	struct archive_span span = {0}, before;
	struct arena arena = {0};
	enum ibid_code code = IBID_OK;
	for (bool first = true; !code && !options->time_is_over(options->user); first = false) {
		before = span;
		arena_release(&arena);
		code = run->store->ops->next_span(run->store, &arena, options->before_us, options->now_us,
		                                  first ? NULL : &before, &span, err);
		if (!code && !*span.part)
			break;
		if (!code)
			code = take_span(run, &span, err);
	}
	arena_release(&arena);
	return code;
}

enum ibid_code ledger_archive(struct store *store, struct env *env,
                              const struct archive_options *options, struct archive_report *ret,
                              struct ibid_err *err)
{
	struct run run = {.store = store, .env = env, .options = options, .report = ret};
	enum ibid_code code = IBID_OK;
	if (options->dir && !options->dry_run)
		code = archive_dir_open(options->dir, &run.dir, err);
	if (!code)
		code = take_all(&run, err);
	archive_dir_close(run.dir);
	return code;
}

/* ---- Back ----------------------------------------------------------------------------------- */

static enum ibid_code next_line(void *user, const char **ret, size_t *ret_size,
                                struct ibid_err *err)
{
	return archive_reader_next(user, ret, ret_size, err);
}

enum ibid_code ledger_restore(struct store *store, const char *path, struct restore_count *ret,
                              struct ibid_err *err)
{
	struct arena arena = {0};
	struct archive_manifest manifest;
	struct archive_reader *reader = NULL;
	const char *file = NULL;
	enum ibid_code code = archive_manifest_read(&arena, path, &manifest, &file, err);
	if (!code)
		code = archive_check(file, &manifest, err);
	if (!code)
		code = archive_reader_open(file, &manifest, &reader, err);
	if (!code) {
		/* The end of the file is compared with its manifest again, before the commit. */
		struct restoring restoring = {
		    .store = manifest.store,
		    .system = manifest.system,
		    .first_id = manifest.first_id,
		    .last_id = manifest.last_id,
		    .next = next_line,
		    .user = reader,
		};
		code = store->ops->restore_events(store, &restoring, ret, err);
	}
	archive_reader_close(reader);
	arena_release(&arena);
	return code;
}
