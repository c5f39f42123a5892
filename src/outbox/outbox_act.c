/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/outbox_act.h"

#include "base/instant.h"
#include "outbox/delivery.h"

#include <string.h>

/* One decision on its way. */
struct deciding {
	const struct acting *acting;
	struct arena *arena;
	const struct event_act *act;
	struct event_acted *acted;
	struct event_row event;
	const char *subject_id;
	struct exception_row item; /* the newest, where there is one */
};

#define REFUSE(deciding, why, err, ...)                                                            \
	((deciding)->acted->refusal = (why), err_set(err, IBID_REJECTED, __VA_ARGS__))

/* ---- Looking -------------------------------------------------------------------------------- */

static enum ibid_code find_hold(struct deciding *deciding, struct ibid_err *err)
{
	struct store *store = deciding->acting->store;
	const struct event_act *act = deciding->act;
	struct hold_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = store->ops->list_holds(store, deciding->arena, act->actor->tenant,
	                                             &act->event_id, &rows, &count, err);
	deciding->acted->is_held = false;
	for (size_t i = 0; !code && i < count; i++) {
		if (strcmp(rows[i].destination, act->destination) != 0)
			continue;
		deciding->acted->is_held = true;
		deciding->acted->hold = rows[i];
	}
	return code;
}

static enum ibid_code find_item(struct deciding *deciding, struct ibid_err *err)
{
	struct store *store = deciding->acting->store;
	struct exception_row *rows = NULL;
	struct exception_filter filter = {
	    .tenant = deciding->act->actor->tenant,
	    .queue = -1,
	    .state = EXCEPTION_OPEN,
	    .subject_type = "delivery",
	    .subject_id = deciding->subject_id,
	    .limit = 1,
	};
	size_t count = 0;
	enum ibid_code code = store->ops->list_exceptions(store, deciding->arena, &filter, &rows,
	                                                  &count, err);
	if (!code && !count) {
		filter.state = -1;
		code = store->ops->list_exceptions(store, deciding->arena, &filter, &rows, &count, err);
	}
	if (!code && count) {
		deciding->item = rows[0];
		deciding->acted->item_id = rows[0].id;
	}
	deciding->acted->has_item = !code && count;
	return code;
}

static enum ibid_code find_pauses(struct deciding *deciding, struct ibid_err *err)
{
	const struct delivery_subject subject = {deciding->act->destination, deciding->event};
	return delivery_pauses(deciding->acting->store, deciding->arena, &subject,
	                       &deciding->acted->pauses, &deciding->acted->pause_count, err);
}

static enum ibid_code look(struct deciding *deciding, struct ibid_err *err)
{
	struct store *store = deciding->acting->store;
	const struct event_act *act = deciding->act;
	enum ibid_code code = store->ops->get_event(store, deciding->arena, act->actor->tenant,
	                                            &act->event_id, &deciding->event, err);
	if (code == IBID_NOT_FOUND)
		return err_set(
		    err, code,
		    "tenant %s has no such event; `ibid outbox list --tenant %s` shows those that "
		    "there are",
		    act->actor->tenant, act->actor->tenant);
	if (!code)
		code = find_hold(deciding, err);
	return code ? code : find_item(deciding, err);
}

/* ---- Refusing ------------------------------------------------------------------------------- */

static enum ibid_code check_destination(struct deciding *deciding, struct ibid_err *err)
{
	const char *destination = deciding->act->destination;
	size_t size = 0;
	const char *goals = event_header(&deciding->event, "deliver_to", &size);
	if (!destination || !*destination)
		return REFUSE(deciding, REFUSED_INPUT, err, "name the destination where it is held");
	if (deciding->acted->is_held || event_is_for(&deciding->event, destination))
		return IBID_OK;
	return REFUSE(deciding, REFUSED_INPUT, err, "the event does not go to %.80s, but to %.*s",
	              destination, goals ? (int)size : 7, goals ? goals : "nowhere");
}

static enum ibid_code refuse_decided(struct deciding *deciding, struct ibid_err *err)
{
	const struct exception_row *item = &deciding->item;
	const char *state = hold_state_name(deciding->acted->hold.state);
	if (!deciding->acted->has_item || !item->resolved_by)
		return REFUSE(deciding, REFUSED_RESOLVED, err, "it is %s there already", state);
	return REFUSE(deciding, REFUSED_RESOLVED, err, "it is %s there already: %s by %s", state,
	              item->resolution, item->resolved_by);
}

static enum ibid_code refuse_not_held(struct deciding *deciding, struct ibid_err *err)
{
	struct store *store = deciding->acting->store;
	const struct event_act *act = deciding->act;
	struct delivery_row *rows = NULL;
	size_t count = 0;
	enum ibid_code code = store->ops->list_deliveries(store, deciding->arena, act->actor->tenant,
	                                                  &act->event_id, &rows, &count, err);
	if (code)
		return code;
	for (size_t i = 0; i < count; i++) {
		char at[INSTANT_TEXT_SIZE];
		if (strcmp(rows[i].destination, act->destination) != 0)
			continue;
		instant_write(rows[i].at_us, at);
		return REFUSE(deciding, REFUSED_NOT_HELD, err, "it arrived at %s: %s", act->destination,
		              at);
	}
	return REFUSE(deciding, REFUSED_NOT_HELD, err, "it is not held at %s: it goes there by itself",
	              act->destination);
}

static enum ibid_code refuse_waiting(struct deciding *deciding, struct ibid_err *err)
{
	const char *reason = deciding->acted->hold.reason;
	if (reason && strcmp(reason, HOLD_PAUSED) == 0)
		return REFUSE(
		    deciding, REFUSED_NOT_HELD, err,
		    "it waits because events of its type were paused: it goes by itself when they "
		    "are resumed");
	return REFUSE(deciding, REFUSED_NOT_HELD, err,
	              "it waits for one before it in its aggregate: decide about that one");
}

/* Why nothing can be decided about it. */
static enum ibid_code refuse(struct deciding *deciding, struct ibid_err *err)
{
	char next[INSTANT_TEXT_SIZE];
	if (!deciding->acted->is_held)
		return refuse_not_held(deciding, err);
	switch (deciding->acted->hold.state) {
	case HOLD_WAITS: return refuse_waiting(deciding, err);
	case HOLD_FAILED:
		instant_write(deciding->acted->hold.next_us, next);
		return REFUSE(deciding, REFUSED_NOT_HELD, err,
		              "it is not parked: it is tried again by itself, at %s", next);
	default: return refuse_decided(deciding, err);
	}
}

/* ---- Doing ---------------------------------------------------------------------------------- */

static enum ibid_code write_release(struct deciding *deciding, struct tx *tx, const char *role,
                                    struct ibid_err *err)
{
	const struct event_act *act = deciding->act;
	const struct hold_decision decision = {
	    .tenant = act->actor->tenant,
	    .destination = act->destination,
	    .event_id = act->event_id,
	    .from = HOLD_FAILED,
	    .to = HOLD_RELEASED,
	};
	const struct action_row action = {
	    .tenant = act->actor->tenant,
	    .id = uuid_v7(deciding->acting->env),
	    .at_us = env_wall_us(deciding->acting->env),
	    .actor = act->actor->client,
	    .token = act->actor->token,
	    .role = role,
	    .action = act->action,
	    .subject_type = "delivery",
	    .subject_id = deciding->subject_id,
	    .reason = act->reason,
	};
	enum ibid_code code = tx->store->ops->decide_hold(tx, &decision, err);
	return code ? code : tx->store->ops->put_action(tx, &action, err);
}

/* One that is tried again by itself goes now. */
static enum ibid_code release_failed(struct deciding *deciding, const char *role,
                                     struct ibid_err *err)
{
	struct store *store = deciding->acting->store;
	struct outcome outcome;
	struct tx *tx = NULL;
	enum ibid_code code = store->ops->begin_action(store, &tx, err);
	if (code)
		return code;
	code = write_release(deciding, tx, role, err);
	if (!code)
		code = store->ops->commit(&tx, deciding->arena, &outcome, err);
	store->ops->rollback(&tx);
	return code;
}

/* As the action of its item. */
static enum ibid_code act_on_item(struct deciding *deciding, struct ibid_err *err)
{
	const struct event_act *act = deciding->act;
	const struct act resolve = {
	    .kind = ACT_RESOLVE,
	    .actor = act->actor,
	    .id = deciding->item.id,
	    .reason = act->reason,
	    .action = act->action,
	};
	struct acted acted;
	enum ibid_code code = exception_act(deciding->acting, deciding->arena, &resolve, &acted, err);
	deciding->acted->refusal = acted.refusal;
	deciding->acted->proposed = acted.proposed;
	deciding->acted->arrived = acted.arrived;
	return code;
}

/* Without an item. */
static enum ibid_code act_alone(struct deciding *deciding, struct ibid_err *err)
{
	const struct event_act *act = deciding->act;
	const char *role = NULL;
	bool fails = deciding->acted->is_held && deciding->acted->hold.state == HOLD_FAILED;
	enum ibid_code code = act_check_role(deciding->arena, act->actor, ROLE_OPERATOR, act->action,
	                                     &role, err);
	if (code) {
		deciding->acted->refusal = REFUSED_ROLE;
		return code;
	}
	if (!fails || strcmp(act->action, "release") != 0)
		return refuse(deciding, err);
	code = release_failed(deciding, role, err);
	if (code != IBID_RETRY && code != IBID_BUSY)
		return code;
	struct ibid_err ignored = {0};
	if (!look(deciding, &ignored) && deciding->acted->is_held &&
	    deciding->acted->hold.state == HOLD_RELEASED)
		return refuse_decided(deciding, err);
	return err_set(err, IBID_BUSY,
	               "the event's state changed at the same time; nothing was done: look with `ibid "
	               "outbox show`, and run the same command again");
}

static enum ibid_code run(struct deciding *deciding, struct ibid_err *err)
{
	enum ibid_code code = act_check_reason(deciding->act->reason, err);
	if (code) {
		deciding->acted->refusal = REFUSED_INPUT;
		return code;
	}
	code = look(deciding, err);
	if (!code)
		code = check_destination(deciding, err);
	if (code)
		return code;
	bool open = deciding->acted->has_item && deciding->item.state == EXCEPTION_OPEN;
	return open ? act_on_item(deciding, err) : act_alone(deciding, err);
}

enum ibid_code outbox_act(const struct acting *acting, struct arena *arena,
                          const struct event_act *act, struct event_acted *ret,
                          struct ibid_err *err)
{
	struct event_act known = *act;
	struct deciding deciding = {.acting = acting, .arena = arena, .act = &known, .acted = ret};
	struct ibid_err ignored = {0};
	*ret = (struct event_acted){.refusal = REFUSED_NOT};
	known.destination = act->destination ? act->destination : "";
	deciding.subject_id = delivery_name(arena, known.destination, &act->event_id);
	if (!deciding.subject_id)
		return err_set(err, IBID_NOMEM, "out of memory");
	enum ibid_code code = run(&deciding, err);
	if (!code && find_hold(&deciding, &ignored))
		ret->is_held = false; /* it is done, and can't be shown; likewise: */
	if (!code && strcmp(act->action, "release") == 0 && find_pauses(&deciding, &ignored))
		ret->pause_count = 0;
	return code;
}
