/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c -- the oldest events, a bounded run of rows at a time: read, dropped, put back.
 *
 * A span is read by one statement of a reader: the writer is not kept waiting for the disk that an
 * archive is written to. So the rows are read again in the transaction that deletes them, and the
 * seal is a digest of their lines. */
#include "store/archive.h"
#include "base/hash.h"
#include "store/sqlite/lite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bounds {
	int64_t from, to; /* both included */
};

static struct bounds bounds_of(const struct archive_span *span)
{
	return (struct bounds){strtoll(span->from, NULL, 10), strtoll(span->to, NULL, 10)};
}

static enum ibid_code start(struct lite_conn *conn, enum lite_sql sql, struct bounds bounds,
                            struct lite_run *run, struct ibid_err *err)
{
	enum ibid_code code = lite_start(conn, sql, run, err);
	lite_bind_int(run, bounds.from);
	lite_bind_int(run, bounds.to);
	return code;
}

/* ---- Finding -------------------------------------------------------------------------------- */

static enum ibid_code find_bound(struct lite_conn *conn, int64_t before_us, int64_t *ret,
                                 struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_archive_bound, &run, err);
	lite_bind_int(&run, before_us);
	if (lite_row(&run, &code, err))
		*ret = lite_read_int(&run);
	lite_end(&run);
	return code;
}

static enum ibid_code find_window(struct lite_conn *conn, int64_t after, int64_t bound,
                                  struct bounds *ret, int64_t *ret_events, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_archive_window, &run, err);
	lite_bind_int(&run, after);
	lite_bind_int(&run, bound);
	lite_bind_int(&run, ARCHIVE_SPAN_EVENTS_MAX);
	if (lite_row(&run, &code, err)) {
		ret->from = lite_read_int(&run);
		ret->to = lite_read_int(&run);
		*ret_events = lite_read_int(&run);
	}
	lite_end(&run);
	return code;
}

static bool is_of(const struct undone_row *row, const char *destination, const char *state)
{
	return strcmp(row->destination, destination) == 0 && strcmp(row->state, state) == 0;
}

/* One event more of a destination and state. */
static void add_undone(struct lite_rows *rows, struct lite_run *run)
{
	const char *destination = lite_read_text(run, rows->arena);
	const char *state = lite_read_text(run, rows->arena);
	int64_t since_us = lite_read_int(run);
	struct undone_row *row = rows->items;
	size_t at = 0;
	if (rows->arena->failed)
		return;
	while (at < rows->count && !is_of(&row[at], destination, state))
		at++;
	row = at < rows->count ? &row[at] : lite_rows_add(rows);
	if (!row)
		return;
	if (!row->events)
		*row = (struct undone_row){destination, state, 0, since_us};
	row->events++;
	if (since_us < row->since_us)
		row->since_us = since_us;
}

/* What stays of the window; the rest may go. */
static enum ibid_code find_undone(struct lite_conn *conn, struct arena *arena, struct bounds bounds,
                                  struct archive_span *ret, struct ibid_err *err)
{
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct undone_row)};
	struct lite_run run;
	int64_t last = 0;
	enum ibid_code code = start(conn, LITE_archive_undone, bounds, &run, err);
	while (lite_row(&run, &code, err)) {
		int64_t seq = lite_read_int(&run);
		ret->events -= seq != last;
		last = seq;
		add_undone(&rows, &run);
		if (arena->failed)
			code = err_set(err, IBID_NOMEM, "out of memory");
	}
	lite_end(&run);
	ret->undone = rows.items;
	ret->undone_count = rows.count;
	return code;
}

static enum ibid_code next_span(struct lite_conn *conn, struct arena *arena, int64_t before_us,
                                const struct archive_span *after, struct archive_span *ret,
                                struct ibid_err *err)
{
	struct bounds bounds = {0};
	enum ibid_code code = IBID_OK;
	*ret = (struct archive_span){.store = "sqlite", .bound = after ? after->bound : 0};
	if (!after)
		code = find_bound(conn, before_us, &ret->bound, err);
	if (!code)
		code = find_window(conn, after ? bounds_of(after).to : 0, ret->bound, &bounds, &ret->events,
		                   err);
	if (code || !bounds.from)
		return code;
	snprintf(ret->part, sizeof ret->part, "ibid_event");
	snprintf(ret->from, sizeof ret->from, "%" PRId64, bounds.from);
	snprintf(ret->to, sizeof ret->to, "%" PRId64, bounds.to);
	snprintf(ret->name, sizeof ret->name, "%012" PRId64 "-%012" PRId64, bounds.from, bounds.to);
	return find_undone(conn, arena, bounds, ret, err);
}

enum ibid_code lite_next_span(struct store *base, struct arena *arena, int64_t before_us,
                              int64_t now_us, const struct archive_span *after,
                              struct archive_span *ret, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct archive_span span;
	struct lite_conn *conn;
	(void)now_us;
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = next_span(conn, arena, before_us, after, &span, err);
	lite_reader_give(store, conn);
	if (!code)
		*ret = span;
	return code;
}

/* ---- Reading and dropping ------------------------------------------------------------------- */

/* The numbers of what was read; none are kept where it is NULL. */
struct seqs {
	int64_t items[ARCHIVE_SPAN_EVENTS_MAX];
	size_t count;
};

/* `fn` NULL: only the seal, and the numbers. */
static enum ibid_code read_lines(struct lite_conn *conn, struct bounds bounds, archive_line_fn *fn,
                                 void *user, struct seqs *seqs, struct archive_seal *ret,
                                 struct ibid_err *err)
{
	struct sha256_sum sum;
	struct lite_run run;
	int64_t count = 0;
	enum ibid_code code = start(conn, LITE_archive_read, bounds, &run, err);
	sha256_init(&sum);
	while (lite_row(&run, &code, err)) {
		int64_t seq = lite_read_int(&run);
		struct archive_line line = {.id = lite_read_uuid(&run)};
		line.deliveries = lite_read_int(&run);
		line.text = (const char *)sqlite3_column_text(run.stmt, run.read);
		line.size = (size_t)sqlite3_column_bytes(run.stmt, run.read);
		if (!line.text) {
			code = err_set(err, IBID_NOMEM, "out of memory");
			break;
		}
		sha256_add(&sum, line.text, line.size + 1);
		count++;
		if (seqs && seqs->count < ARCHIVE_SPAN_EVENTS_MAX)
			seqs->items[seqs->count++] = seq;
		if (fn)
			code = fn(user, &line, err);
	}
	lite_end(&run);
	char text[SHA256_TEXT_SIZE];
	struct sha256 hash = sha256_end(&sum);
	sha256_write(&hash, text);
	snprintf(ret->text, sizeof ret->text, "%" PRId64 ":%s", count, text);
	return code;
}

enum ibid_code lite_read_span(struct store *base, const struct archive_span *span,
                              archive_line_fn *fn, void *user, struct archive_seal *ret,
                              struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct archive_seal seal = {0};
	struct lite_conn *conn;
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = read_lines(conn, bounds_of(span), fn, user, NULL, &seal, err);
	lite_reader_give(store, conn);
	if (!code)
		*ret = seal;
	return code;
}

static enum ibid_code put_row(struct lite_conn *conn, const struct archive_row *row,
                              struct ibid_err *err)
{
	char file_hash[SHA256_TEXT_SIZE], content_hash[SHA256_TEXT_SIZE];
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_archive_put, &run, err);
	sha256_write(&row->sha256, file_hash);
	sha256_write(&row->content_sha256, content_hash);
	lite_bind_int(&run, row->at_us);
	lite_bind_text(&run, row->file);
	lite_bind_text(&run, row->range_from);
	lite_bind_text(&run, row->range_to);
	lite_bind_uuid(&run, &row->first_id);
	lite_bind_uuid(&run, &row->last_id);
	lite_bind_int(&run, row->events);
	lite_bind_int(&run, row->deliveries);
	lite_bind_int(&run, row->bytes);
	lite_bind_text(&run, file_hash);
	lite_bind_text(&run, content_hash);
	return lite_conclude(&run, code, err);
}

static enum ibid_code remove_rows(struct lite_conn *conn, const struct seqs *seqs,
                                  struct ibid_err *err)
{
	enum ibid_code code = lite_do(conn, LITE_retention_open, err);
	for (size_t i = 0; !code && i < seqs->count; i++) {
		struct lite_run run;
		code = lite_start(conn, LITE_archive_drop, &run, err);
		lite_bind_int(&run, seqs->items[i]);
		code = lite_conclude(&run, code, err);
	}
	if (!code)
		code = lite_do(conn, LITE_archive_drop_holds, err);
	return code ? code : lite_do(conn, LITE_retention_close, err);
}

/* In the writer's transaction. */
static enum ibid_code drop(struct lite_conn *conn, struct bounds bounds,
                           const struct archive_seal *seal, struct seqs *seqs,
                           const struct archive_row *row, struct ibid_err *err)
{
	struct archive_seal now = {0};
	enum ibid_code code = read_lines(conn, bounds, NULL, NULL, seqs, &now, err);
	if (!code && strcmp(now.text, seal->text) != 0)
		code = err_set(
		    err, IBID_RETRY,
		    "events changed while they were archived; nothing was removed: run `ibid retain` "
		    "again");
	if (!code)
		code = remove_rows(conn, seqs, err);
	return code || !row ? code : put_row(conn, row, err);
}

enum ibid_code lite_drop_span(struct store *base, const struct archive_span *span,
                              const struct archive_seal *seal, const struct archive_row *row,
                              struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct seqs *seqs = calloc(1, sizeof *seqs);
	struct lite_conn *conn;
	if (!seqs)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (!code) {
		code = drop(conn, bounds_of(span), seal, seqs, row, err);
		code = lite_write_end(store, code, err);
	}
	free(seqs);
	return code;
}

/* ---- Back ----------------------------------------------------------------------------------- */

struct line {
	const char *text;
	size_t size;
};

static enum ibid_code put_line(struct lite_conn *conn, enum lite_sql sql, struct line line,
                               struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, sql, &run, err);
	lite_bind_bytes(&run, line.text, line.size);
	return lite_conclude(&run, code, err);
}

static bool same_line(struct line line, const char *text, size_t size)
{
	return size == line.size && memcmp(text, line.text, size) == 0;
}

/* Is it there already, and is its place free? Behind the newest event is no place that relays are
 * past: only another file's events come there, and nobody may be reading. */
static enum ibid_code look(struct lite_conn *conn, struct line line, bool leased, bool *ret_present,
                           struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_archive_line, &run, err);
	lite_bind_bytes(&run, line.text, line.size);
	*ret_present = false;
	if (lite_row(&run, &code, err)) {
		const char *found = (const char *)sqlite3_column_text(run.stmt, 0);
		size_t size = (size_t)sqlite3_column_bytes(run.stmt, 0);
		const char *other = (const char *)sqlite3_column_text(run.stmt, 1);
		const char *id = (const char *)sqlite3_column_text(run.stmt, 3);
		*ret_present = found && same_line(line, found, size);
		if (found && !*ret_present)
			code = err_set(err, IBID_DUPLICATE,
			               "event %s of tenant %s is in the store already, and not as it was "
			               "archived",
			               id, (const char *)sqlite3_column_text(run.stmt, 4));
		else if (!found && other)
			code = err_set(err, IBID_DUPLICATE,
			               "the place of event %s is taken by event %s: the archive is of another "
			               "file",
			               id ? id : "?", other);
		else if (!found && leased && !sqlite3_column_int(run.stmt, 2))
			code = err_set(err, IBID_BUSY,
			               "the archive is of another file, and a relay is running that would take "
			               "its events for new ones: stop the relays and run it again");
	}
	lite_end(&run);
	return code;
}

static enum ibid_code restore_line(struct lite_conn *conn, struct line line, bool leased,
                                   struct restore_count *ret, struct ibid_err *err)
{
	bool present = false;
	enum ibid_code code = look(conn, line, leased, &present, err);
	if (code)
		return code;
	if (present) {
		ret->present++;
		return IBID_OK;
	}
	code = put_line(conn, LITE_archive_restore_event, line, err);
	if (!code)
		code = put_line(conn, LITE_archive_restore_deliveries, line, err);
	if (!code)
		code = put_line(conn, LITE_archive_restore_holds, line, err);
	ret->restored++;
	return code;
}

static enum ibid_code ask_leased(struct lite_conn *conn, int64_t now_us, bool *ret,
                                 struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_archive_leased, &run, err);
	lite_bind_int(&run, now_us);
	if (lite_row(&run, &code, err))
		*ret = lite_read_int(&run) > 0;
	lite_end(&run);
	return code;
}

static enum ibid_code restore(struct lite_conn *conn, const struct restoring *restoring,
                              int64_t now_us, struct restore_count *ret, struct ibid_err *err)
{
	bool leased = false;
	enum ibid_code code = ask_leased(conn, now_us, &leased, err);
	while (!code) {
		struct line line = {0};
		code = restoring->next(restoring->user, &line.text, &line.size, err);
		if (code || !line.size)
			return code;
		/* What is put behind the newest is the newest then: the first one tells. */
		code = restore_line(conn, line, leased, ret, err);
	}
	return code;
}

enum ibid_code lite_restore_events(struct store *base, const struct restoring *restoring,
                                   struct restore_count *ret, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct restore_count count = {0};
	struct lite_conn *conn;
	if (strcmp(restoring->store, "sqlite") != 0)
		return err_set(err, IBID_INVALID, "the archive is of a %s store, and this one is SQLite",
		               restoring->store);
	enum ibid_code code = lite_write_begin(store, lite_wait_us(store), &conn, err);
	if (code)
		return code;
	code = restore(conn, restoring, env_wall_us(store->env), &count, err);
	code = lite_write_end(store, code, err);
	if (!code)
		*ret = count;
	return code;
}

/* ---- Looking -------------------------------------------------------------------------------- */
