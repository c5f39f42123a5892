/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/outbox_look.h"

#include "desk/exception.h"
#include "outbox/delivery.h"
#include "outbox/pause.h"

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
