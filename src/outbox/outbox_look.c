/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/outbox_look.h"

#include "base/obj.h"
#include "desk/exception.h"
#include "outbox/delivery.h"
#include "outbox/pause.h"

#include <string.h>

bool outbox_is_kept(const struct outbox_row *row, const struct pause_row *pause)
{
	const struct pausable event = {row->destination, row->tenant, row->type};
	bool over = row->state == OUTBOX_PUBLISHED || row->state == OUTBOX_SKIPPED ||
	            row->state == OUTBOX_CANCELLED;
	return !over && pause_keeps(pause, &event);
}

/* The one that the relay opens when it parks an event. */
static enum ibid_code find_exception(struct store *store, struct arena *arena,
                                     const struct outbox_row *row, struct uuid *ret,
                                     struct ibid_err *err)
{
	const struct exception_row *item = NULL;
	const struct exception_filter filter = {
	    .tenant = row->tenant,
	    .state = EXCEPTION_OPEN,
	    .subject_type = delivery_subject.type,
	    .subject_id = delivery_name(arena, row->destination, &row->event_id),
	};
	if (!filter.subject_id)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = exception_newest(store, arena, filter, &item, err);
	if (!code)
		*ret = item ? item->id : (struct uuid){{0}};
	return code;
}

enum ibid_code outbox_file_read(struct store *store, struct arena *arena, const char *tenant,
                                const struct uuid *id, struct outbox_file *ret,
                                struct ibid_err *err)
{
	const struct outbox_filter filter = {.tenant = tenant, .event_id = id, .state = -1};
	struct outbox_file file = {.row_count = 0};
	enum ibid_code code = store_get_event(store, arena, tenant, id, &file.event, err);
	if (!code)
		code = store_list_outbox(store, arena, &filter, &file.rows, &file.row_count, err);
	if (!code)
		code = store_list_deliveries(store, arena, tenant, id, &file.deliveries,
		                             &file.delivery_count, err);
	if (!code)
		code = store_list_pauses(store, arena, tenant, &file.pauses, &file.pause_count, err);
	if (code)
		return code;
	file.exceptions = arena_array(arena, file.row_count, sizeof *file.exceptions);
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	for (size_t i = 0; !code && i < file.row_count; i++)
		code = find_exception(store, arena, &file.rows[i], &file.exceptions[i], err);
	if (!code)
		*ret = file;
	return code;
}

void outbox_json(struct str *out, const struct outbox_row *row, struct pauses_found pauses,
                 const struct uuid *exception, enum row_view view)
{
	static const struct uuid none;
	obj_begin(out, NULL, '{');
	row_add_json(out, &outbox_shape, row, view);
	obj_begin(out, "paused", '[');
	for (size_t i = 0; i < pauses.count; i++)
		if (outbox_is_kept(row, &pauses.rows[i]))
			row_add_object(out, NULL, &pause_shape, &pauses.rows[i], view);
	obj_end(out, ']');
	if (exception && memcmp(exception, &none, sizeof none) != 0)
		obj_id(out, "exceptionId", *exception);
	obj_end(out, '}');
}

void outbox_file_json(struct str *out, const struct outbox_file *file, enum row_view view)
{
	obj_begin(out, NULL, '{');
	row_add_json(out, &event_shape, &file->event, view);
	obj_begin(out, "destinations", '[');
	for (size_t i = 0; i < file->row_count; i++)
		outbox_json(out, &file->rows[i], (struct pauses_found){file->pauses, file->pause_count},
		            &file->exceptions[i], view);
	obj_end(out, ']');
	row_add_list(out, "deliveries", &delivery_shape, file->deliveries, file->delivery_count, view);
	obj_end(out, '}');
}
