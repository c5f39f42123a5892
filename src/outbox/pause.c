/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c -- pause something, or let it go on.
 *
 * What is paused is looked at first, for a clear refusal; the transaction then decides, so that of
 * two who do it at once one is told that the other was faster. */
#include "outbox/pause.h"

#include "base/instant.h"
#include "base/obj.h"
#include "base/utf8.h"
#include "command/work.h"
#include "contract/event.h"
#include "contract/payload.h"
#include "store/outbox.h"

#include <string.h>

enum { PARAMETERS_BYTES_MAX = 64 << 10 };

/* One wish on its way. */
struct doing {
	const struct pausing *pausing;
	struct arena *arena;
	const struct pause_wish *wish;
	struct pause_done *done;
	const char *name, *tenant, *what, *role;
	bool paused; /* done->row says how */
	int64_t now_us;
};

#define REFUSE(doing, why, err, ...)                                                               \
	((doing)->done->refusal = (why), err_set(err, IBID_REJECTED, __VA_ARGS__))

const char *pause_subject(struct arena *arena, enum pause_kind kind, const char *name)
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

static enum ibid_code no_memory(struct ibid_err *err)
{
	return err_set(err, IBID_NOMEM, "out of memory");
}

/* ---- What is asked -------------------------------------------------------------------------- */

static enum ibid_code check_input(struct doing *doing, struct ibid_err *err)
{
	const char *reason = doing->wish->reason;
	bool whole = doing->wish->kind == PAUSE_RELAY;
	if (!reason || !reason[strspn(reason, " \t\r\n")])
		return REFUSE(doing, PAUSE_REFUSED_INPUT, err,
		              "a reason is required: it is kept as evidence");
	if (strlen(reason) > TEXT_BYTES_MAX || !utf8_ok(reason, strlen(reason)))
		return REFUSE(doing, PAUSE_REFUSED_INPUT, err, "the reason is UTF-8 of at most %d bytes",
		              TEXT_BYTES_MAX);
	if (whole && *doing->name)
		return REFUSE(doing, PAUSE_REFUSED_INPUT, err, "the relay has no name");
	if (!whole && name_check("name", doing->name, err)) {
		struct ibid_err why = *err;
		return REFUSE(doing, PAUSE_REFUSED_INPUT, err, "%s", why.text);
	}
	return IBID_OK;
}

static enum ibid_code check_role(struct doing *doing, struct ibid_err *err)
{
	bool of_tenant = doing->wish->kind == PAUSE_EVENT;
	const char *verb = doing->wish->resume ? "resume" : "pause";
	doing->role = actor_role(doing->wish->actor, of_tenant ? ROLE_OPERATOR : ROLE_ADMIN);
	if (doing->role)
		return IBID_OK;
	if (of_tenant)
		return REFUSE(doing, PAUSE_REFUSED_ROLE, err,
		              "to %s an event type, a token needs the role operator or admin", verb);
	return REFUSE(doing, PAUSE_REFUSED_ROLE, err,
	              "to %s %s, which is every tenant's, a token needs the role admin", verb,
	              doing->what);
}

/* Those that a relay ever served. */
static enum ibid_code check_destination(struct doing *doing, struct ibid_err *err)
{
	struct store *store = doing->pausing->store;
	struct lane_row *lanes = NULL;
	size_t count = 0;
	const char *known = "";
	enum ibid_code code = store->ops->list_lanes(store, doing->arena, &lanes, &count, err);
	for (size_t i = 0; !code && i < count; i++) {
		if (strcmp(lanes[i].destination, doing->name) == 0)
			return IBID_OK;
		if (i == 0 || strcmp(lanes[i].destination, lanes[i - 1].destination) != 0)
			known = arena_printf(doing->arena, "%s%s%s", known ? known : "", i ? ", " : "",
			                     lanes[i].destination);
	}
	if (code)
		return code;
	return REFUSE(doing, PAUSE_REFUSED_NAME, err,
	              "no relay has ever served a destination %s; known: %s", doing->name,
	              known && *known ? known : "none");
}

static enum ibid_code check_event(struct doing *doing, struct ibid_err *err)
{
	const struct contracts *contracts = doing->pausing->contracts;
	const char *known = "";
	if (!contracts || contracts_event(contracts, doing->name))
		return IBID_OK;
	for (size_t i = 0; i < contracts_event_count(contracts); i++)
		known = arena_printf(doing->arena, "%s%s%s", known ? known : "", i ? ", " : "",
		                     contracts_event_at(contracts, i)->name);
	return REFUSE(doing, PAUSE_REFUSED_NAME, err, "there is no contract for event %s; known: %s",
	              doing->name, known && *known ? known : "none");
}

static enum ibid_code check_name(struct doing *doing, struct ibid_err *err)
{
	switch (doing->wish->kind) {
	case PAUSE_DESTINATION: return check_destination(doing, err);
	case PAUSE_EVENT: return check_event(doing, err);
	default: return IBID_OK;
	}
}

/* ---- What is there -------------------------------------------------------------------------- */

static enum ibid_code look(struct doing *doing, struct ibid_err *err)
{
	struct store *store = doing->pausing->store;
	struct pause_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = store->ops->list_pauses(store, doing->arena, doing->wish->actor->tenant,
	                                              &rows, &count, err);
	doing->paused = false;
	for (size_t i = 0; !code && i < count; i++) {
		if (rows[i].kind != doing->wish->kind || strcmp(rows[i].name, doing->name) != 0)
			continue;
		doing->paused = true;
		doing->done->row = rows[i];
	}
	return code;
}

/* Is there anything to do? */
static enum ibid_code check_state(struct doing *doing, struct ibid_err *err)
{
	const struct pause_row *row = &doing->done->row;
	char since[INSTANT_TEXT_SIZE];
	if (doing->paused == doing->wish->resume)
		return IBID_OK;
	if (!doing->paused)
		return REFUSE(doing, PAUSE_REFUSED_STATE, err, "%s is not paused", doing->what);
	instant_write(row->since_us, since);
	return REFUSE(doing, PAUSE_REFUSED_STATE, err, "%s is paused already since %s, by %s: %s",
	              doing->what, since, row->by, row->reason);
}

/* ---- Doing ---------------------------------------------------------------------------------- */

/* A pause is gone when it ended: how it was stays with who ended it. */
static const char *parameters(struct doing *doing)
{
	const struct pause_row *row = &doing->done->row;
	struct str out = STR_INIT(PARAMETERS_BYTES_MAX);
	char since[INSTANT_TEXT_SIZE];
	if (!doing->wish->resume)
		return NULL;
	instant_write(row->since_us, since);
	obj_begin(&out, NULL, '{');
	obj_text(&out, "paused_by", row->by);
	obj_text(&out, "since", since);
	obj_text(&out, "reason", row->reason);
	obj_end(&out, '}');
	const char *text = out.failed ? NULL : arena_strndup(doing->arena, str_text(&out), out.size);
	doing->arena->failed |= out.failed;
	str_release(&out);
	return text;
}

static struct action_row action_of(struct doing *doing)
{
	const struct pause_wish *wish = doing->wish;
	return (struct action_row){
	    .tenant = wish->actor->tenant,
	    .id = uuid_v7(doing->pausing->env),
	    .at_us = doing->now_us,
	    .actor = wish->actor->client,
	    .token = wish->actor->token,
	    .role = doing->role,
	    .action = wish->resume ? "resume" : "pause",
	    .subject_type = pause_kind_name(wish->kind),
	    .subject_id = *doing->name ? doing->name : pause_kind_name(wish->kind),
	    .reason = wish->reason,
	    .parameters = parameters(doing),
	};
}

static enum ibid_code put(struct doing *doing, struct tx *tx, struct ibid_err *err)
{
	const struct pause_wish *wish = doing->wish;
	doing->done->row = (struct pause_row){
	    .kind = wish->kind,
	    .tenant = doing->tenant,
	    .name = doing->name,
	    .by = wish->actor->client,
	    .reason = wish->reason,
	    .since_us = doing->now_us,
	};
	return tx->store->ops->put_pause(tx, &doing->done->row, err);
}

static enum ibid_code end(struct doing *doing, struct tx *tx, struct ibid_err *err)
{
	const struct store_ops *ops = tx->store->ops;
	const struct pause_row *row = &doing->done->row;
	const struct exception_end item = {
	    .tenant = row->item_tenant,
	    .queue = QUEUE_DEAD_LETTER,
	    .subject_type = pause_kind_name(row->kind),
	    .subject_id = row->name,
	    .resolved_us = doing->now_us,
	    .resolution = "resume",
	    .resolved_by = doing->wish->actor->client,
	    .note = doing->wish->reason,
	};
	enum ibid_code code = ops->end_pause(tx, row, err);
	return code || !row->item_tenant ? code : ops->resolve_exception(tx, &item, err);
}

static enum ibid_code write(struct doing *doing, struct ibid_err *err)
{
	struct store *store = doing->pausing->store;
	struct action_row action = action_of(doing);
	struct outcome outcome;
	struct tx *tx = NULL;
	if (doing->arena->failed)
		return no_memory(err);
	enum ibid_code code = store->ops->begin_action(store, &tx, err);
	if (code)
		return code;
	code = (doing->wish->resume ? end : put)(doing, tx, err);
	if (!code)
		code = store->ops->put_action(tx, &action, err);
	if (!code)
		code = store->ops->commit(&tx, doing->arena, &outcome, err);
	store->ops->rollback(&tx);
	return code;
}

static enum ibid_code check(struct doing *doing, struct ibid_err *err)
{
	enum ibid_code code = doing->arena->failed ? no_memory(err) : check_input(doing, err);
	if (!code)
		code = check_role(doing, err);
	if (!code)
		code = look(doing, err);
	if (!code)
		code = check_state(doing, err);
	return code || doing->wish->resume ? code : check_name(doing, err);
}

/* The transaction found it otherwise than we did: say how it is. */
static enum ibid_code tell_faster(struct doing *doing, struct ibid_err *err)
{
	enum ibid_code code = look(doing, err);
	if (!code)
		code = check_state(doing, err);
	return code
	           ? code
	           : err_set(
	                 err, IBID_BUSY,
	                 "somebody else pauses or resumes it at the same time; nothing was done: `ibid "
	                 "pause list` shows what is paused");
}

enum ibid_code pause_act(const struct pausing *pausing, struct arena *arena,
                         const struct pause_wish *wish, struct pause_done *ret,
                         struct ibid_err *err)
{
	const char *name = wish->name ? wish->name : "";
	*ret = (struct pause_done){.refusal = PAUSE_REFUSED_NOT};
	struct doing doing = {
	    .pausing = pausing,
	    .arena = arena,
	    .wish = wish,
	    .done = ret,
	    .name = name,
	    .tenant = wish->kind == PAUSE_EVENT ? wish->actor->tenant : "",
	    .what = pause_subject(arena, wish->kind, name),
	    .now_us = env_wall_us(pausing->env),
	};
	enum ibid_code code = check(&doing, err);
	if (!code)
		code = write(&doing, err);
	if (code == IBID_RETRY || code == IBID_FENCED || code == IBID_BUSY)
		return tell_faster(&doing, err);
	return code;
}
