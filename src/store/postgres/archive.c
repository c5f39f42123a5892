/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c -- the oldest events, a month at a time: read, dropped, put back.
 *
 * A month is read page by page in one snapshot, which holds no lock. It is dropped by a function
 * that locks it first and then compares its seal: see 002_archive.sql. */
#include "store/archive.h"
#include "store/postgres/array.h"

#include <stdio.h>
#include <string.h>

enum {
	PAGE_EVENTS = 100,           /* each of them a megabyte at most */
	BATCH_EVENTS = 200,          /* that are restored by one call, */
	BATCH_BYTES = 4 << 20,       /* about */
	BATCH_BYTES_MAX = 256 << 20, /* whose last line may be long */
};

static enum ibid_code no_memory(struct ibid_err *err)
{
	return err_set(err, IBID_NOMEM, "out of memory");
}

static enum ibid_code trip_on(struct pg_conn *conn, struct pg_call *calls, size_t count,
                              struct ibid_err *err)
{
	struct pg_trip trip;
	if (pg_trip(conn, calls, count, &trip))
		return IBID_OK;
	const PGresult *failed = pg_trip_error(conn, calls, count, &trip);
	enum ibid_code code = pg_error(conn, failed, err);
	conn->broken |= pg_error_is_fatal(conn, failed);
	return code;
}

/* ---- Finding -------------------------------------------------------------------------------- */

static void copy_cell(char *ret, size_t size, const PGresult *result, int column)
{
	const char *text = pg_cell(result, 0, column);
	snprintf(ret, size, "%s", text ? text : "");
}

static void read_span(const PGresult *result, struct archive_span *ret)
{
	*ret = (struct archive_span){.store = "postgres"};
	copy_cell(ret->part, sizeof ret->part, result, 0);
	copy_cell(ret->name, sizeof ret->name, result, 1);
	copy_cell(ret->from, sizeof ret->from, result, 2);
	copy_cell(ret->to, sizeof ret->to, result, 3);
	ret->events = pg_cell_int(result, 0, 4);
	copy_cell(ret->system, sizeof ret->system, result, 5);
}

static enum ibid_code list_undone(struct pg_store *store, struct arena *arena,
                                  struct archive_span *span, struct ibid_err *err)
{
	const char *values[] = {span->from, span->to};
	struct pg_call call = PG_CALL(ARCHIVE_UNDONE, .values = values);
	enum ibid_code code = pg_pool_query(store, &call, 1, err);
	size_t count = code ? 0 : (size_t)PQntuples(call.result);
	struct undone_row *rows = count ? arena_array(arena, count, sizeof *rows) : NULL;
	for (size_t i = 0; rows && i < count; i++)
		rows[i] = (struct undone_row){
		    .destination = pg_cell_text(arena, call.result, (int)i, 0),
		    .state = pg_cell_text(arena, call.result, (int)i, 1),
		    .events = pg_cell_int(call.result, (int)i, 2),
		    .since_us = pg_cell_int(call.result, (int)i, 3),
		};
	pg_release(&call, 1);
	if (code || arena->failed)
		return code ? code : no_memory(err);
	span->undone = rows;
	span->undone_count = count;
	span->held = count > 0;
	return IBID_OK;
}

enum ibid_code pg_next_span(struct store *base, struct arena *arena, int64_t before_us,
                            int64_t now_us, const struct archive_span *after,
                            struct archive_span *ret, struct ibid_err *err)
{
	const char *values[] = {after ? after->part : "", pg_time(arena, before_us),
	                        pg_time(arena, now_us)};
	struct pg_call call = PG_CALL(ARCHIVE_NEXT, .values = values);
	struct archive_span span;
	enum ibid_code code = arena->failed ? no_memory(err)
	                                    : pg_pool_query(pg_store_of(base), &call, 1, err);
	if (!code) {
		read_span(call.result, &span);
		if (*span.part)
			code = list_undone(pg_store_of(base), arena, &span, err);
	}
	pg_release(&call, 1);
	if (!code)
		*ret = span;
	return code;
}

/* ---- Reading and dropping ------------------------------------------------------------------- */

/* Where a page ended. */
struct mark {
	struct arena arena;
	const char *tenant, *id;
};

static enum ibid_code hand_on(const PGresult *result, archive_line_fn *fn, void *user,
                              struct mark *mark, struct ibid_err *err)
{
	enum ibid_code code = IBID_OK;
	int count = PQntuples(result);
	for (int row = 0; !code && row < count; row++) {
		struct archive_line line = {
		    .text = pg_cell(result, row, 2),
		    .size = (size_t)PQgetlength(result, row, 2),
		    .id = pg_cell_uuid(result, row, 1),
		    .deliveries = pg_cell_int(result, row, 3),
		};
		code = line.text ? fn(user, &line, err)
		                 : err_set(err, IBID_INTERNAL,
		                           "an event was deleted while it was archived, not by ibid: look "
		                           "who else deletes "
		                           "from ibid.event");
	}
	arena_release(&mark->arena);
	if (!code && count) {
		mark->tenant = pg_cell_text(&mark->arena, result, count - 1, 0);
		mark->id = pg_cell_text(&mark->arena, result, count - 1, 1);
	}
	return !code && mark->arena.failed ? no_memory(err) : code;
}

static enum ibid_code read_pages(struct pg_conn *conn, const struct archive_span *span,
                                 archive_line_fn *fn, void *user, struct ibid_err *err)
{
	struct mark mark = {.tenant = "", .id = "00000000-0000-0000-0000-000000000000"};
	struct arena arena = {0};
	const char *page = pg_int(&arena, PAGE_EVENTS);
	enum ibid_code code = page ? IBID_OK : no_memory(err);
	for (bool more = true; more && !code;) {
		const char *values[] = {span->from, span->to, mark.tenant, mark.id, page};
		struct pg_call call = PG_CALL(ARCHIVE_READ, .values = values);
		code = trip_on(conn, &call, 1, err);
		more = !code && PQntuples(call.result) == PAGE_EVENTS;
		if (!code)
			code = hand_on(call.result, fn, user, &mark, err);
		pg_release(&call, 1);
	}
	arena_release(&mark.arena);
	arena_release(&arena);
	return code;
}

static enum ibid_code read_seal(struct pg_conn *conn, const struct archive_span *span,
                                struct archive_seal *ret, struct ibid_err *err)
{
	const char *values[] = {span->from, span->to};
	struct pg_call call = PG_CALL(ARCHIVE_SEAL, .values = values);
	enum ibid_code code = trip_on(conn, &call, 1, err);
	if (!code)
		copy_cell(ret->text, sizeof ret->text, call.result, 0);
	pg_release(&call, 1);
	return code;
}

enum ibid_code pg_read_span(struct store *base, const struct archive_span *span,
                            archive_line_fn *fn, void *user, struct archive_seal *ret,
                            struct ibid_err *err)
{
	struct pg_store *store = pg_store_of(base);
	struct pg_call begin = PG_CALL(ARCHIVE_BEGIN);
	struct pg_conn *conn = NULL;
	enum ibid_code code = pg_pool_trip(store, &begin, 1, &conn, err);
	pg_release(&begin, 1);
	if (code)
		return code;
	code = read_pages(conn, span, fn, user, err);
	if (!code)
		code = read_seal(conn, span, ret, err);
	pg_pool_give(store, conn); /* and rolls back: nothing was written */
	return code;
}

enum { DROP_BEGIN, DROP_MONTH, DROP_PUT, DROP_COMMIT, DROP_STEPS };

enum ibid_code pg_drop_span(struct store *base, const struct archive_span *span,
                            const struct archive_seal *seal, const struct archive_row *row,
                            struct ibid_err *err)
{
	struct arena arena = {0};
	char file_hash[SHA256_TEXT_SIZE] = "", content_hash[SHA256_TEXT_SIZE] = "";
	const char *month[] = {span->part, span->from, span->to, seal->text};
	const char *put[11] = {0};
	if (row) {
		sha256_write(&row->sha256, file_hash);
		sha256_write(&row->content_sha256, content_hash);
		const char *values[] = {pg_time(&arena, row->at_us),
		                        row->file,
		                        row->range_from,
		                        row->range_to,
		                        pg_uuid(&arena, &row->first_id),
		                        pg_uuid(&arena, &row->last_id),
		                        pg_int(&arena, row->events),
		                        pg_int(&arena, row->deliveries),
		                        pg_int(&arena, row->bytes),
		                        file_hash,
		                        content_hash};
		memcpy(put, values, sizeof values);
	}
	struct pg_call calls[DROP_STEPS] = {
	    [DROP_BEGIN] = PG_CALL(BEGIN),
	    [DROP_MONTH] = PG_CALL(ARCHIVE_DROP, .values = month),
	    [DROP_PUT] = row ? PG_CALL(ARCHIVE_PUT, .values = put) : PG_CALL(COMMIT),
	    [DROP_COMMIT] = PG_CALL(COMMIT),
	};
	size_t count = row ? DROP_STEPS : DROP_STEPS - 1;
	enum ibid_code code = arena.failed ? no_memory(err)
	                                   : pg_pool_query(pg_store_of(base), calls, count, err);
	pg_release(calls, DROP_STEPS);
	arena_release(&arena);
	return code;
}

/* ---- Back ----------------------------------------------------------------------------------- */

/* As many lines as go into one call. */
static enum ibid_code gather(const struct restoring *restoring, struct str *ret, size_t *ret_count,
                             bool *ret_more, struct ibid_err *err)
{
	size_t count = 0;
	str_clear(ret);
	while (count < BATCH_EVENTS && ret->size < BATCH_BYTES) {
		const char *line = NULL;
		size_t size = 0;
		enum ibid_code code = restoring->next(restoring->user, &line, &size, err);
		if (code)
			return code;
		*ret_more = size > 0;
		if (!size)
			break;
		pg_array_add(ret, line);
		count++;
	}
	str_addc(ret, '}');
	*ret_count = count;
	return ret->failed ? no_memory(err) : IBID_OK;
}

static enum ibid_code restore_lines(struct pg_conn *conn, const struct restoring *restoring,
                                    struct restore_count *ret, struct ibid_err *err)
{
	struct str lines = STR_INIT(BATCH_BYTES_MAX);
	enum ibid_code code = IBID_OK;
	for (bool more = true; more && !code;) {
		size_t count = 0;
		code = gather(restoring, &lines, &count, &more, err);
		if (code || !count)
			break;
		const char *values[] = {str_text(&lines), restoring->system};
		struct pg_call call = PG_CALL(ARCHIVE_RESTORE, .values = values);
		code = trip_on(conn, &call, 1, err);
		if (!code) {
			ret->restored += pg_cell_int(call.result, 0, 0);
			ret->present += pg_cell_int(call.result, 0, 1);
		}
		pg_release(&call, 1);
	}
	str_release(&lines);
	return code;
}

/* In a transaction of its own: it locks all events for a moment, which putting them back does not.
 */
static enum ibid_code make_months(struct pg_store *store, const struct restoring *restoring,
                                  struct ibid_err *err)
{
	struct arena arena = {0};
	const char *values[] = {pg_uuid(&arena, &restoring->first_id),
	                        pg_uuid(&arena, &restoring->last_id)};
	struct pg_call call = PG_CALL(ARCHIVE_MONTHS, .values = values);
	enum ibid_code code = arena.failed ? no_memory(err) : pg_pool_query(store, &call, 1, err);
	pg_release(&call, 1);
	arena_release(&arena);
	return code;
}

enum ibid_code pg_restore_events(struct store *base, const struct restoring *restoring,
                                 struct restore_count *ret, struct ibid_err *err)
{
	struct pg_store *store = pg_store_of(base);
	struct pg_call begin = PG_CALL(BEGIN), commit = PG_CALL(COMMIT);
	struct restore_count count = {0};
	struct pg_conn *conn = NULL;
	if (strcmp(restoring->store, "postgres") != 0)
		return err_set(err, IBID_INVALID,
		               "the archive is of a %s store, and this one is PostgreSQL",
		               restoring->store);
	enum ibid_code code = make_months(store, restoring, err);
	if (!code)
		code = pg_pool_trip(store, &begin, 1, &conn, err);
	pg_release(&begin, 1);
	if (code)
		return code;
	code = restore_lines(conn, restoring, &count, err);
	if (!code)
		code = trip_on(conn, &commit, 1, err);
	pg_release(&commit, 1);
	pg_pool_give(store, conn);
	if (!code)
		*ret = count;
	return code;
}

/* ---- Looking -------------------------------------------------------------------------------- */
