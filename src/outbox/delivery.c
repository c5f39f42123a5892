/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/delivery.h"

#include "base/instant.h"
#include "base/obj.h"
#include "outbox/pause.h"
#include "store/run.h"

#include <assert.h>
#include <string.h>

/* An event, at one destination. */
struct found {
	const char *destination;
	struct event_row event;
};

const char *delivery_name(struct arena *arena, const char *destination, const struct uuid *event)
{
	char id[UUID_TEXT_SIZE];
	uuid_write(*event, id);
	return arena_printf(arena, "%s/%s", destination, id);
}

/* ---- Finding -------------------------------------------------------------------------------- */

/* At each destination: to cancel concerns them all. */
static enum ibid_code find_hold(struct action *action, struct ibid_err *err)
{
	const struct found *found = action->found;
	struct action_result *result = action->result;
	struct store *store = action->desk->store;
	struct hold_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = store_list_holds(store, action->arena, found->event.tenant,
	                                       &found->event.id, &rows, &count, err);
	result->is_held = false;
	for (size_t i = 0; !code && i < count; i++) {
		code = row_check_words(&hold_shape, &rows[i], "the event where it is held", err);
		if (code || strcmp(rows[i].destination, found->destination) != 0)
			continue;
		result->is_held = true;
		result->hold = rows[i];
	}
	return code;
}

/* Does the event go to the destination that a client named? */
static enum ibid_code check_destination(struct action *action, struct ibid_err *err)
{
	const struct found *found = action->found;
	size_t size = 0;
	const char *named = event_header(&found->event, "deliver_to", &size);
	if (!*found->destination)
		return action_refuse(action, REFUSED_INPUT, err, "name the destination where it is held");
	if (action->result->is_held || event_is_for(&found->event, found->destination))
		return IBID_OK;
	return action_refuse(action, REFUSED_INPUT, err, "the event does not go to %.80s, but to %.*s",
	                     found->destination, named ? (int)size : 7, named ? named : "nowhere");
}

static enum ibid_code find(struct action *action, struct ibid_err *err)
{
	struct store *store = action->desk->store;
	struct found *found = arena_alloc(action->arena, sizeof *found);
	const char *tenant = action->request->actor->tenant, *of = action->subject_id;
	const char *slash = strrchr(of, '/');
	struct uuid id;
	if (!slash || !uuid_read(slash + 1, &id))
		return err_set(err, IBID_CONTRACT, "%s is no delivery of an event", of);
	const char *destination = arena_strndup(action->arena, of, (size_t)(slash - of));
	if (!found || !destination)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = store_get_event(store, action->arena, tenant, &id, &found->event, err);
	if (code == IBID_NOT_FOUND && action->by_item)
		return err_set(err, IBID_CONTRACT, "the event of %s is not there", of);
	if (code == IBID_NOT_FOUND)
		return err_set(err, code,
		               "tenant %s has no such event; `ibid outbox list --tenant %s` shows those "
		               "that there are",
		               tenant, tenant);
	if (code)
		return code;
	found->destination = destination;
	action->found = found;
	code = find_hold(action, err);
	return code || action->by_item ? code : check_destination(action, err);
}

/* ---- Without an exception ------------------------------------------------------------------- */

static enum ibid_code refuse_decided(struct action *action, struct ibid_err *err)
{
	const struct exception_row *item = &action->result->item;
	const char *state = hold_state_name(action->result->hold.state);
	if (!action->result->has_item || !item->resolved_by)
		return action_refuse(action, REFUSED_RESOLVED, err, "it is %s there already", state);
	return action_refuse(action, REFUSED_RESOLVED, err, "it is %s there already: %s by %s", state,
	                     item->resolution, item->resolved_by);
}

static enum ibid_code refuse_not_held(struct action *action, struct ibid_err *err)
{
	const struct found *found = action->found;
	struct store *store = action->desk->store;
	struct delivery_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = store_list_deliveries(store, action->arena, found->event.tenant,
	                                            &found->event.id, &rows, &count, err);
	if (code)
		return code;
	for (size_t i = 0; i < count; i++) {
		char at[INSTANT_TEXT_SIZE];
		if (strcmp(rows[i].destination, found->destination) != 0)
			continue;
		instant_write(rows[i].at_us, at);
		return action_refuse(action, REFUSED_NOT_HELD, err, "it arrived at %s: %s",
		                     found->destination, at);
	}
	return action_refuse(action, REFUSED_NOT_HELD, err,
	                     "it is not held at %s: it goes there by itself", found->destination);
}

static enum ibid_code refuse_waiting(struct action *action, struct ibid_err *err)
{
	const char *reason = action->result->hold.reason;
	bool paused = reason && strcmp(reason, HOLD_PAUSED) == 0;
	return action_refuse(
	    action, REFUSED_NOT_HELD, err, "%s",
	    paused ? "it waits because events of its type were paused: it goes by itself when they "
	             "are resumed"
	           : "it waits for one before it in its aggregate: decide about that one");
}

/* What an open exception tells about is PARKED, which the transaction compares. Otherwise only what
 * failed and is tried again can be released, to go now. */
static enum ibid_code check(struct action *action, struct ibid_err *err)
{
	const struct hold_row *hold = &action->result->hold;
	char next[INSTANT_TEXT_SIZE];
	if (action->by_item)
		return IBID_OK;
	if (!action->result->is_held)
		return refuse_not_held(action, err);
	if (hold->state == HOLD_WAITS)
		return refuse_waiting(action, err);
	if (hold->state != HOLD_FAILED)
		return refuse_decided(action, err);
	if (strcmp(action->rule->name, "release") == 0)
		return IBID_OK;
	instant_write(hold->next_us, next);
	return action_refuse(action, REFUSED_NOT_HELD, err,
	                     "it is not parked: it is tried again by itself, at %s", next);
}

/* ---- Deciding ------------------------------------------------------------------------------- */

static enum ibid_code decide(struct action *action, struct tx *tx, enum hold_state to,
                             struct ibid_err *err)
{
	const struct found *found = action->found;
	const struct hold_decision decision = {
	    .tenant = found->event.tenant,
	    .destination = found->destination,
	    .event_id = found->event.id,
	    .from = action->by_item ? HOLD_PARKED : HOLD_FAILED,
	    .to = to,
	};
	return store_decide_hold(tx, &decision, err);
}

static enum ibid_code release(struct action *action, struct tx *tx,
                              const struct action_record *record, struct ibid_err *err)
{
	(void)record;
	return decide(action, tx, HOLD_RELEASED, err);
}

static enum ibid_code skip(struct action *action, struct tx *tx, const struct action_record *record,
                           struct ibid_err *err)
{
	(void)record;
	return decide(action, tx, HOLD_SKIPPED, err);
}

/* The exceptions about it at another destination; the failure there has chosen their queue. */
static enum ibid_code end_items(struct action *action, struct tx *tx, const char *destination,
                                const struct exception_end *own, struct ibid_err *err)
{
	const struct found *found = action->found;
	struct exception_end end = *own;
	end.id = end.approval = NULL;
	end.subject_type = delivery_subject.type;
	end.subject_id = delivery_name(action->arena, destination, &found->event.id);
	end.note = arena_printf(action->arena, "cancelled with its delivery to %s: %s",
	                        found->destination, own->note);
	enum ibid_code code = action->arena->failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                            : IBID_OK;
	for (int queue = 0; !code && queue < EXCEPTION_QUEUE_COUNT; queue++) {
		end.queue = (enum exception_queue)queue;
		code = store_resolve_exception(tx, &end, err);
	}
	return code;
}

/* Everywhere, together with the exceptions about it at other destinations. */
static enum ibid_code cancel(struct action *action, struct tx *tx,
                             const struct action_record *record, struct ibid_err *err)
{
	const struct found *found = action->found;
	const struct withdrawal withdrawal = {
	    .tenant = found->event.tenant,
	    .event_id = found->event.id,
	    .at_us = action->now_us,
	};
	size_t left = 0;
	const char *at = event_header(&found->event, "deliver_to", &left);
	assert(record->end); /* what is not parked can't be cancelled: check */
	enum ibid_code code = store_withdraw_event(tx, &withdrawal, err);
	while (!code && at && left) {
		size_t size = strcspn(at, ",\"");
		const char *destination = arena_strndup(action->arena, at, size);
		if (!destination)
			return err_set(err, IBID_NOMEM, "out of memory");
		if (strcmp(destination, found->destination) != 0)
			code = end_items(action, tx, destination, record->end, err);
		left -= size + (left > size);
		at += size + 1;
	}
	return code;
}

/* ---- Showing -------------------------------------------------------------------------------- */

/* What is paused and keeps the event from going to the destination. */
static enum ibid_code show_pauses(struct action *action, struct ibid_err *err)
{
	const struct found *found = action->found;
	const struct pausable event = {found->destination, found->event.tenant, found->event.type};
	struct store *store = action->desk->store;
	struct pause_row *rows = NULL;
	size_t count = 0, kept = 0;
	enum ibid_code code = store_list_pauses(store, action->arena, event.tenant, &rows, &count, err);
	if (code)
		return code;
	for (size_t i = 0; i < count; i++)
		if (pause_keeps(&rows[i], &event))
			rows[kept++] = rows[i];
	action->result->pauses = rows;
	action->result->pause_count = kept;
	return IBID_OK;
}

/* Where the event had arrived before it was cancelled. */
static enum ibid_code show_arrived(struct action *action, struct ibid_err *err)
{
	const struct found *found = action->found;
	struct store *store = action->desk->store;
	const char *names = NULL;
	struct delivery_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = store_list_deliveries(store, action->arena, found->event.tenant,
	                                            &found->event.id, &rows, &count, err);
	if (code)
		return code;
	for (size_t i = 0; i < count; i++)
		if (!names_hold(names, rows[i].destination))
			names = names ? arena_printf(action->arena, "%s,%s", names, rows[i].destination)
			              : rows[i].destination;
	action->result->arrived = names;
	return IBID_OK;
}

static enum ibid_code show(struct action *action, struct ibid_err *err)
{
	const char *done = action->result->proposed ? "" : action->result->action;
	enum ibid_code code = find_hold(action, err);
	if (!code && strcmp(done, "release") == 0)
		code = show_pauses(action, err);
	if (!code && strcmp(done, "cancel") == 0)
		code = show_arrived(action, err);
	return code;
}

static const struct action_rule rules[] = {
    {"release", ROLE_OPERATOR, .write = release},
    {"skip", ROLE_OPERATOR, .write = skip},
    {"cancel", ROLE_OPERATOR, .write = cancel},
    {0},
};
const struct action_subject delivery_subject = {
    .type = "delivery", .rules = rules, .find = find, .check = check, .show = show};

void delivery_done_json(struct str *out, const struct actor *actor, const struct uuid *event,
                        const char *destination, const struct action_result *result,
                        enum row_view view)
{
	obj_id(out, "eventId", *event);
	obj_text_if(out, "destination", destination);
	obj_text(out, "action", result->action);
	obj_text(out, "by", actor->client);
	obj_bool(out, "proposed", result->proposed);
	if (result->is_held)
		obj_text(out, "state", hold_state_name(result->hold.state));
	if (result->has_item)
		obj_id(out, "exceptionId", result->item.id);
	names_json(out, "arrivedAt", result->arrived);
	row_add_list(out, "paused", &pause_shape, result->pauses, result->pause_count, view);
}
