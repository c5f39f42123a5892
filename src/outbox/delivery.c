/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/delivery.h"

#include "outbox/act.h"
#include "outbox/pause.h"

#include <string.h>

const char *delivery_name(struct arena *arena, const char *destination, const struct uuid *event)
{
	char id[UUID_TEXT_SIZE];
	uuid_write(*event, id);
	return arena_printf(arena, "%s/%s", destination, id);
}

static bool read_subject(struct arena *arena, const struct exception_row *item,
                         const char **ret_destination, struct uuid *ret_id)
{
	const char *slash = strrchr(item->subject_id, '/');
	if (!slash || !uuid_read(slash + 1, ret_id))
		return false;
	*ret_destination = arena_strndup(arena, item->subject_id, (size_t)(slash - item->subject_id));
	return *ret_destination;
}

enum ibid_code delivery_find(struct store *store, struct arena *arena,
                             const struct exception_row *item, struct delivery_subject *ret,
                             struct ibid_err *err)
{
	struct uuid id;
	if (!read_subject(arena, item, &ret->destination, &id))
		return err_set(err, IBID_CONTRACT, "%s is no delivery of an event", item->subject_id);
	enum ibid_code code = store->ops->get_event(store, arena, item->tenant, &id, &ret->event, err);
	return code == IBID_NOT_FOUND
	           ? err_set(err, IBID_CONTRACT, "the event of %s is not there", item->subject_id)
	           : code;
}

/* The items about it at another destination; in which queue they are is the failure's doing. */
static enum ibid_code end_items(struct tx *tx, struct arena *arena,
                                const struct delivery_subject *subject, const char *destination,
                                const struct deed *deed, struct ibid_err *err)
{
	struct exception_end end = deed->end;
	end.id = end.approval = NULL;
	end.subject_type = "delivery";
	end.subject_id = delivery_name(arena, destination, &subject->event.id);
	end.note = arena_printf(arena, "cancelled with its delivery to %s: %s", subject->destination,
	                        deed->end.note);
	enum ibid_code code = arena->failed ? err_set(err, IBID_NOMEM, "out of memory") : IBID_OK;
	for (int queue = 0; !code && queue < EXCEPTION_QUEUE_COUNT; queue++) {
		end.queue = (enum exception_queue)queue;
		code = tx->store->ops->resolve_exception(tx, &end, err);
	}
	return code;
}

static enum ibid_code withdraw(struct tx *tx, struct arena *arena,
                               const struct delivery_subject *subject, const struct deed *deed,
                               struct ibid_err *err)
{
	const struct withdrawal withdrawal = {
	    .tenant = subject->event.tenant,
	    .event_id = subject->event.id,
	    .at_us = deed->end.resolved_us,
	};
	size_t left = 0;
	const char *at = event_header(&subject->event, "deliver_to", &left);
	enum ibid_code code = tx->store->ops->withdraw_event(tx, &withdrawal, err);
	while (!code && at && left) {
		size_t size = strcspn(at, ",\"");
		const char *destination = arena_strndup(arena, at, size);
		if (!destination)
			return err_set(err, IBID_NOMEM, "out of memory");
		if (strcmp(destination, subject->destination) != 0)
			code = end_items(tx, arena, subject, destination, deed, err);
		left -= size + (left > size);
		at += size + 1;
	}
	return code;
}

enum ibid_code delivery_decide(struct tx *tx, struct arena *arena,
                               const struct delivery_subject *subject, enum hold_state to,
                               const struct deed *deed, struct ibid_err *err)
{
	const struct hold_decision decision = {
	    .tenant = subject->event.tenant,
	    .destination = subject->destination,
	    .event_id = subject->event.id,
	    .from = HOLD_PARKED,
	    .to = to,
	};
	return to == HOLD_CANCELLED ? withdraw(tx, arena, subject, deed, err)
	                            : tx->store->ops->decide_hold(tx, &decision, err);
}

enum ibid_code delivery_pauses(struct store *store, struct arena *arena,
                               const struct delivery_subject *subject, struct pause_row **ret,
                               size_t *ret_count, struct ibid_err *err)
{
	const struct pausable event = {subject->destination, subject->event.tenant,
	                               subject->event.type};
	struct pause_row *rows = NULL;
	size_t count = 0, kept = 0;
	enum ibid_code code = store->ops->list_pauses(store, arena, event.tenant, &rows, &count, err);
	if (code)
		return code;
	for (size_t i = 0; i < count; i++)
		if (pause_keeps(&rows[i], &event))
			rows[kept++] = rows[i];
	*ret = rows;
	*ret_count = kept;
	return IBID_OK;
}

enum ibid_code delivery_arrived(struct store *store, struct arena *arena,
                                const struct exception_row *item, const char **ret,
                                struct ibid_err *err)
{
	const char *destination, *names = NULL;
	struct uuid id;
	struct delivery_row *rows = NULL;
	size_t count = 0;
	if (!read_subject(arena, item, &destination, &id))
		return IBID_OK;
	enum ibid_code code = store->ops->list_deliveries(store, arena, item->tenant, &id, &rows,
	                                                  &count, err);
	for (size_t i = 0; !code && i < count; i++)
		if (!names_hold(names, rows[i].destination))
			names = names ? arena_printf(arena, "%s,%s", names, rows[i].destination)
			              : rows[i].destination;
	if (!code)
		*ret = names;
	return code;
}
