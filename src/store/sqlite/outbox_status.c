/* SPDX-License-Identifier: Apache-2.0 */
/* outbox_status.c -- how events stand toward their destinations.
 *
 * SQLite can't ask a view for one row of a join at a time: it would make the whole view first.
 * Hence the walk along the events is here, and the view is asked for each; the walk's statement
 * holds the snapshot that all of them read. */
#include "base/instant.h"
#include "store/outbox.h"
#include "store/sqlite/lite.h"

#include <stdlib.h>
#include <string.h>

static enum ibid_code no_memory(struct ibid_err *err)
{
	return err_set(err, IBID_NOMEM, "out of memory");
}

static enum ibid_code read_status(struct lite_run *run, struct arena *arena, struct outbox_row *ret,
                                  struct ibid_err *err)
{
	ret->tenant = lite_read_text(run, arena);
	ret->event_id = lite_read_uuid(run);
	ret->event_key = lite_read_text(run, arena);
	ret->type = lite_read_text(run, arena);
	ret->aggregate_type = lite_read_text(run, arena);
	ret->aggregate_id = lite_read_text(run, arena);
	ret->version = lite_read_int(run);
	ret->topic = lite_read_text(run, arena);
	ret->destination = lite_read_text(run, arena);
	const char *state = lite_read_text(run, arena);
	ret->attempts = lite_read_small(run);
	ret->failure = lite_read_text(run, arena);
	ret->reason = lite_read_text(run, arena);
	ret->why = lite_read_text(run, arena);
	ret->waits_for = lite_read_int(run);
	ret->next_us = lite_read_int(run);
	ret->since_us = lite_read_int(run);
	ret->relay = lite_read_text(run, arena);
	ret->place = lite_read_text(run, arena);
	ret->partition = lite_read_small(run);
	ret->offset = lite_read_int(run);
	ret->published_us = lite_read_int(run);
	ret->created_us = instant_clamp(lite_read_int(run));
	if (arena->failed)
		return no_memory(err);
	return outbox_state_read(state, &ret->state)
	           ? IBID_OK
	           : err_set(err, IBID_SCHEMA, "an event is %s; upgrade ibid", state);
}

static bool is_behind(const struct outbox_row *row, const struct outbox_filter *filter)
{
	if (!filter->after || memcmp(&row->event_id, filter->after, sizeof row->event_id) != 0)
		return true;
	return filter->after_destination && strcmp(row->destination, filter->after_destination) > 0;
}

/* Rows of the view from a started run, which it ends. */
static enum ibid_code add_behind(struct lite_rows *rows, size_t limit,
                                 const struct outbox_filter *filter, struct lite_run *run,
                                 enum ibid_code code, struct ibid_err *err)
{
	while (rows->count < limit && lite_row(run, &code, err)) {
		struct outbox_row row = {0};
		code = read_status(run, rows->arena, &row, err);
		if (code || !is_behind(&row, filter))
			continue;
		struct outbox_row *added = lite_rows_add(rows);
		if (added)
			*added = row;
		else
			code = no_memory(err);
	}
	lite_end(run);
	return code;
}

static const char *state_of(const struct outbox_filter *filter)
{
	return filter->state < 0 ? NULL : outbox_state_name((enum outbox_state)filter->state);
}

static enum ibid_code add_event(struct lite_conn *conn, const char *tenant, const struct uuid *id,
                                struct lite_rows *rows, size_t limit,
                                const struct outbox_filter *filter, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_outbox_get, &run, err);
	lite_bind_text(&run, tenant);
	lite_bind_uuid(&run, id);
	lite_bind_text(&run, state_of(filter));
	lite_bind_text(&run, filter->destination);
	return add_behind(rows, limit, filter, &run, code, err);
}

/* Up to the filter's limit of one tenant. */
static enum ibid_code add_tenant(struct lite_conn *conn, const char *tenant, struct lite_rows *rows,
                                 const struct outbox_filter *filter, struct ibid_err *err)
{
	struct lite_run run;
	size_t limit = rows->count + filter->limit;
	enum ibid_code code = lite_start(conn, LITE_outbox_event_list, &run, err);
	lite_bind_text(&run, tenant);
	lite_bind_uuid(&run, filter->after);
	lite_bind_text(&run, filter->type);
	lite_bind_text(&run, filter->aggregate_type);
	lite_bind_text(&run, filter->aggregate_id);
	while (rows->count < limit && lite_row(&run, &code, err)) {
		struct uuid id = lite_read_uuid(&run);
		code = add_event(conn, tenant, &id, rows, limit, filter, err);
	}
	lite_end(&run);
	return code;
}

/* `*ret` NULL: there is none. */
static enum ibid_code next_tenant(struct lite_conn *conn, struct arena *arena, const char *tenant,
                                  const char **ret, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_outbox_tenant_next, &run, err);
	*ret = NULL;
	lite_bind_text(&run, tenant);
	if (lite_row(&run, &code, err))
		*ret = lite_read_text(&run, arena);
	lite_end(&run);
	return arena->failed ? no_memory(err) : code;
}

static int by_age(const void *one, const void *other)
{
	const struct outbox_row *a = one, *b = other;
	int newer = memcmp(&b->event_id, &a->event_id, sizeof a->event_id);
	return newer ? newer : strcmp(a->destination, b->destination);
}

/* The newest of each, of which the newest remain: there is no index on id alone (I9). */
static enum ibid_code add_tenants(struct lite_conn *conn, struct lite_rows *rows,
                                  const struct outbox_filter *filter, struct ibid_err *err)
{
	const char *tenant = NULL;
	enum ibid_code code = next_tenant(conn, rows->arena, NULL, &tenant, err);
	while (!code && tenant) {
		code = add_tenant(conn, tenant, rows, filter, err);
		if (!code)
			code = next_tenant(conn, rows->arena, tenant, &tenant, err);
	}
	if (!code && rows->count)
		qsort(rows->items, rows->count, rows->size, by_age);
	if (rows->count > filter->limit)
		rows->count = filter->limit;
	return code;
}

/* In a state that only what is held has: the view finds them from the hold. */
static enum ibid_code add_held(struct lite_conn *conn, struct lite_rows *rows,
                               const struct outbox_filter *filter, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_outbox_list_held, &run, err);
	lite_bind_text(&run, state_of(filter));
	lite_bind_text(&run, filter->tenant);
	lite_bind_text(&run, filter->destination);
	lite_bind_text(&run, filter->type);
	lite_bind_text(&run, filter->aggregate_type);
	lite_bind_text(&run, filter->aggregate_id);
	lite_bind_uuid(&run, filter->after);
	lite_bind_text(&run, filter->after_destination);
	lite_bind_int(&run, (int64_t)filter->limit);
	return add_behind(rows, filter->limit, filter, &run, code, err);
}

static enum ibid_code add_rows(struct lite_conn *conn, struct lite_rows *rows,
                               const struct outbox_filter *filter, struct ibid_err *err)
{
	static const struct outbox_filter every = {.state = -1};
	if (filter->event_id)
		return add_event(conn, filter->tenant, filter->event_id, rows, SIZE_MAX, &every, err);
	if (filter->state >= OUTBOX_FAILED)
		return add_held(conn, rows, filter, err);
	return filter->tenant ? add_tenant(conn, filter->tenant, rows, filter, err)
	                      : add_tenants(conn, rows, filter, err);
}

enum ibid_code lite_list_outbox(struct store *base, struct arena *arena,
                                const struct outbox_filter *filter, struct outbox_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct outbox_row)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = add_rows(conn, &rows, filter, err);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
