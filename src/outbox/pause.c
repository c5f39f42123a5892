/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/pause.h"

#include "base/instant.h"
#include "base/obj.h"
#include "contract/event.h"
#include "contract/payload.h"
#include "store/run.h"

#include <assert.h>
#include <string.h>

enum { PARAMETERS_BYTES_MAX = 64 << 10 };

struct found {
	enum pause_kind kind;
	const char *name, *what;
	bool paused; /* result->pause says how */
};

const char *pause_text(struct arena *arena, enum pause_kind kind, const char *name)
{
	return kind == PAUSE_RELAY ? "the relay"
	                           : arena_printf(arena, "%s %s", pause_kind_name(kind), name);
}

bool pause_keeps(const struct pause_row *row, const struct pausable *event)
{
	switch (row->kind) {
	case PAUSE_DESTINATION: return strcmp(row->name, event->destination) == 0;
	case PAUSE_EVENT:
		return strcmp(row->name, event->type) == 0 && strcmp(row->tenant, event->tenant) == 0;
	default: return true;
	}
}

/* ---- Finding -------------------------------------------------------------------------------- */

static enum ibid_code check_input(struct action *action, const struct found *found,
                                  struct ibid_err *err)
{
	struct ibid_err why = {0};
	if (found->kind == PAUSE_RELAY)
		return *found->name ? action_refuse(action, REFUSED_INPUT, err, "the relay has no name")
		                    : IBID_OK;
	return name_check("name", found->name, &why)
	           ? action_refuse(action, REFUSED_INPUT, err, "%s", why.text)
	           : IBID_OK;
}

/* A pause is gone when it ended: how it was stays with the record of who ended it. */
static const char *parameters(struct action *action)
{
	const struct pause_row *row = &action->result->pause;
	struct str out = STR_INIT(PARAMETERS_BYTES_MAX);
	char since[INSTANT_TEXT_SIZE];
	instant_write(row->since_us, since);
	obj_begin(&out, NULL, '{');
	obj_text(&out, "paused_by", row->by);
	obj_text(&out, "since", since);
	obj_text(&out, "reason", row->reason);
	obj_end(&out, '}');
	const char *text = out.failed ? NULL : arena_strndup(action->arena, str_text(&out), out.size);
	action->arena->failed |= out.failed;
	str_release(&out);
	return text;
}

static enum ibid_code look(struct action *action, struct found *found, struct ibid_err *err)
{
	struct store *store = action->desk->store;
	struct pause_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = store_list_pauses(store, action->arena, action->request->actor->tenant,
	                                        &rows, &count, err);
	for (size_t i = 0; !code && i < count; i++) {
		if (rows[i].kind != found->kind || strcmp(rows[i].name, found->name) != 0)
			continue;
		code = row_check_words(&pause_shape, &rows[i], "the pause", err);
		found->paused = true;
		action->result->pause = rows[i];
	}
	return code;
}

static enum ibid_code find(struct action *action, struct ibid_err *err)
{
	struct found *found = arena_alloc(action->arena, sizeof *found);
	enum pause_kind kind = PAUSE_RELAY;
	bool known = pause_kind_read(action->subject->type, &kind);
	const char *name = action->subject_id, *what = pause_text(action->arena, kind, name);
	if (!found || !what)
		return err_set(err, IBID_NOMEM, "out of memory");
	*found = (struct found){.kind = kind, .name = name, .what = what};
	assert(known);
	enum ibid_code code = check_input(action, found, err);
	if (!code)
		code = look(action, found, err);
	action->what = kind == PAUSE_EVENT
	                   ? "an event type"
	                   : arena_printf(action->arena, "%s, which is every tenant's", what);
	if (!*name)
		action->subject_id = pause_kind_name(kind);
	action->found = found;
	return code;
}

/* ---- May it be done? ------------------------------------------------------------------------ */

/* Those that a relay ever served. */
static enum ibid_code check_destination(struct action *action, const char *name,
                                        struct ibid_err *err)
{
	struct store *store = action->desk->store;
	struct lane_row *lanes = NULL;
	size_t count = 0;
	const char *known = "";
	enum ibid_code code = store_list_lanes(store, action->arena, &lanes, &count, err);
	for (size_t i = 0; !code && i < count; i++) {
		if (strcmp(lanes[i].destination, name) == 0)
			return IBID_OK;
		if (i == 0 || strcmp(lanes[i].destination, lanes[i - 1].destination) != 0)
			known = arena_printf(action->arena, "%s%s%s", known ? known : "", i ? ", " : "",
			                     lanes[i].destination);
	}
	if (code)
		return code;
	return action_refuse(action, REFUSED_NAME, err,
	                     "no relay has ever served a destination %s; known: %s", name,
	                     known && *known ? known : "none");
}

static enum ibid_code check_event(struct action *action, const char *name, struct ibid_err *err)
{
	const struct contracts *contracts = action->desk->contracts;
	const char *known = "";
	if (!contracts || contracts_event(contracts, name))
		return IBID_OK;
	for (size_t i = 0; i < contracts_event_count(contracts); i++)
		known = arena_printf(action->arena, "%s%s%s", known ? known : "", i ? ", " : "",
		                     contracts_event_at(contracts, i)->name);
	return action_refuse(action, REFUSED_NAME, err, "there is no contract for event %s; known: %s",
	                     name, known && *known ? known : "none");
}

static enum ibid_code resume(struct action *action, struct tx *tx,
                             const struct action_record *record, struct ibid_err *err);

static enum ibid_code check(struct action *action, struct ibid_err *err)
{
	const struct found *found = action->found;
	const struct pause_row *row = &action->result->pause;
	bool resumes = action->rule->write == resume;
	char since[INSTANT_TEXT_SIZE];
	if (resumes && found->paused)
		action->parameters = parameters(action);
	if (resumes)
		return found->paused
		           ? IBID_OK
		           : action_refuse(action, REFUSED_NO_CHANGE, err, "%s is not paused", found->what);
	if (found->paused) {
		instant_write(row->since_us, since);
		return action_refuse(action, REFUSED_NO_CHANGE, err,
		                     "%s is paused already since %s, by %s: %s", found->what, since,
		                     row->by, row->reason);
	}
	switch (found->kind) {
	case PAUSE_DESTINATION: return check_destination(action, found->name, err);
	case PAUSE_EVENT: return check_event(action, found->name, err);
	default: return IBID_OK;
	}
}

/* ---- Doing ---------------------------------------------------------------------------------- */

static enum ibid_code pause(struct action *action, struct tx *tx,
                            const struct action_record *record, struct ibid_err *err)
{
	const struct found *found = action->found;
	action->result->pause = (struct pause_row){
	    .kind = found->kind,
	    .tenant = found->kind == PAUSE_EVENT ? record->action.tenant : "",
	    .name = found->name,
	    .by = record->action.actor,
	    .reason = record->action.reason,
	    .since_us = action->now_us,
	};
	return store_put_pause(tx, &action->result->pause, err);
}

/* The exception that tells about it may be another tenant's. */
static enum ibid_code resume(struct action *action, struct tx *tx,
                             const struct action_record *record, struct ibid_err *err)
{
	const struct pause_row *row = &action->result->pause;
	const struct exception_end item = {
	    .tenant = row->item_tenant,
	    .queue = QUEUE_DEAD_LETTER,
	    .subject_type = pause_kind_name(row->kind),
	    .subject_id = row->name,
	    .resolved_us = action->now_us,
	    .resolution = "resume",
	    .resolved_by = record->action.actor,
	    .note = record->action.reason,
	};
	bool other = row->item_tenant && !action->by_item;
	enum ibid_code code = store_end_pause(tx, row, err);
	return code || !other ? code : store_resolve_exception(tx, &item, err);
}

static const struct action_rule for_all[] = {
    {"pause", 0, .write = pause}, {"resume", 0, .write = resume}, {0}};
static const struct action_rule for_tenant[] = {
    {"pause", ROLE_OPERATOR, .write = pause}, {"resume", ROLE_OPERATOR, .write = resume}, {0}};

#define SUBJECT(name, list)                                                                        \
	{                                                                                              \
		(name), (list), .ends_item = true, .find = find, .check = check                            \
	}
const struct action_subject pause_subjects[PAUSE_KIND_COUNT] = {
    [PAUSE_RELAY] = SUBJECT("relay", for_all),
    [PAUSE_DESTINATION] = SUBJECT("destination", for_all),
    [PAUSE_EVENT] = SUBJECT("event", for_tenant),
};
