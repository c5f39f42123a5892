/* SPDX-License-Identifier: Apache-2.0 */
/* outbox_status.c -- how events stand toward their destinations.
 *
 * SQLite can't ask a view for one row of a join at a time: it would make the whole view first.
 * Hence the walk along the events is here, and the view is asked for each; the walk's statement
 * holds the snapshot that all of them read. */
#include "store/outbox.h"
#include "store/run.h"
#include "store/sqlite/lite.h"

#include <stdlib.h>
#include <string.h>

static enum ibid_code no_memory(struct ibid_err *err)
{
	return err_set(err, IBID_NOMEM, "out of memory");
}

static bool is_behind(const struct outbox_row *row, const struct outbox_filter *filter)
{
	if (!filter->after || memcmp(&row->event_id, filter->after, sizeof row->event_id) != 0)
		return true;
	return filter->after_destination && strcmp(row->destination, filter->after_destination) > 0;
}

/* Of the rows from the `first` on, those that are on this page. */
static void keep_behind(struct row_list *rows, size_t first, size_t limit,
                        const struct outbox_filter *filter)
{
	struct outbox_row *items = rows->items;
	size_t kept = first;
	for (size_t i = first; i < rows->count && kept < limit; i++)
		if (is_behind(&items[i], filter))
			items[kept++] = items[i];
	rows->count = kept;
}

static enum ibid_code add_event(struct lite_conn *conn, const char *tenant, const struct uuid *id,
                                struct row_list *rows, size_t limit,
                                const struct outbox_filter *filter, struct ibid_err *err)
{
	struct outbox_filter of = {
	    .tenant = tenant,
	    .event_id = id,
	    .state = filter->state,
	    .destination = filter->destination,
	};
	struct sql_in in = SQL_IN(outbox_get, outbox_filter_shape, &of);
	size_t first = rows->count;
	enum ibid_code code = lite_run_sql(conn, &in, rows, err);
	if (!code && rows->arena->failed)
		code = no_memory(err);
	if (!code)
		keep_behind(rows, first, limit, filter);
	return code;
}

/* Up to the filter's limit of one tenant. */
static enum ibid_code add_tenant(struct lite_conn *conn, const char *tenant, struct row_list *rows,
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
static enum ibid_code add_tenants(struct lite_conn *conn, struct row_list *rows,
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
		qsort(rows->items, rows->count, sizeof(struct outbox_row), by_age);
	if (rows->count > filter->limit)
		rows->count = filter->limit;
	return code;
}

enum ibid_code lite_list_outbox(struct store *base, struct arena *arena,
                                const struct outbox_filter *filter, struct outbox_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct row_list rows = {.arena = arena, .shape = &outbox_shape};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = filter->tenant ? add_tenant(conn, filter->tenant, &rows, filter, err)
	                      : add_tenants(conn, &rows, filter, err);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
