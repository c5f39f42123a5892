/* SPDX-License-Identifier: Apache-2.0 */
/* outbox_act.c -- requests by which people decide about an event that a destination did not take.
 */
#include "outbox/outbox_act.h"
#include "base/obj.h"
#include "http/act.h"
#include "http/pause.h"

#include <string.h>

enum { DOCUMENT_BYTES_MAX = 1 << 20 };

/* ---- What is sent --------------------------------------------------------------------------- */

static bool read_member(struct request *request, const struct json *member, struct event_act *act)
{
	if (strcmp(member->name, "destination") == 0)
		return act_text(request, member, &act->destination);
	if (strcmp(member->name, "reason") == 0)
		return act_text(request, member, &act->reason);
	return act_bad_member(request, member->name, "is not a member of it");
}

/* False: the request is answered. */
static bool read_act(struct request *request, struct event_act *ret)
{
	if (!uuid_read(request->params[0], &ret->event_id)) {
		answer_problem(&request->answer, &request->arena, PROBLEM_NOT_FOUND,
		               "there is no such event");
		return false;
	}
	const struct json *body = act_body(request);
	for (const struct json *member = body ? body->child : NULL; member; member = member->next)
		if (!read_member(request, member, ret))
			break;
	return !request->answer.status;
}

/* ---- What is answered ----------------------------------------------------------------------- */

static void add_id(struct str *out, const char *name, struct uuid id)
{
	char text[UUID_TEXT_SIZE];
	uuid_write(id, text);
	obj_text(out, name, text);
}

/* Names that are joined by commas, as a list. */
static void add_names(struct str *out, const char *name, struct arena *arena, const char *names)
{
	obj_begin(out, name, '[');
	while (names && *names) {
		size_t size = strcspn(names, ",");
		const char *one = arena_strndup(arena, names, size);
		if (one)
			obj_text(out, NULL, one);
		names += size + (names[size] == ',');
	}
	obj_end(out, ']');
}

static void answer_done(struct request *request, const struct event_act *act,
                        const struct event_acted *acted)
{
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	obj_begin(&out, NULL, '{');
	add_id(&out, "eventId", act->event_id);
	obj_text(&out, "destination", act->destination);
	obj_text(&out, "action", act->action);
	obj_text(&out, "by", act->actor->client);
	obj_bool(&out, "proposed", acted->proposed);
	if (acted->is_held)
		obj_text(&out, "state", hold_state_name(acted->hold.state));
	if (acted->has_item)
		add_id(&out, "exceptionId", acted->item_id);
	add_names(&out, "arrivedAt", &request->arena, acted->arrived);
	obj_begin(&out, "paused", '[');
	for (size_t i = 0; i < acted->pause_count; i++)
		add_pause(&out, &acted->pauses[i]);
	obj_end(&out, ']');
	obj_end(&out, '}');
	const char *json = out.failed || request->arena.failed
	                       ? NULL
	                       : arena_strndup(&request->arena, str_text(&out), out.size);
	if (json)
		answer_json(&request->answer, 200, json);
	else
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE, "out of memory");
	str_release(&out);
}

/* ---- Acting --------------------------------------------------------------------------------- */

static void act_as(struct request *request, struct event_act act)
{
	struct actor actor = act_actor(request);
	struct acting acting = act_acting(request);
	struct event_acted acted = {.refusal = REFUSED_NOT};
	struct ibid_err err = {0};
	act.actor = &actor;
	enum ibid_code code = outbox_act(&acting, &request->arena, &act, &acted, &err);
	if (code == IBID_NOT_FOUND)
		err_set(&err, IBID_NOT_FOUND, "there is no such event");
	if (code)
		act_not_done(request, code, acted.refusal, &err);
	else
		answer_done(request, &act, &acted);
}

static void act(struct request *request, const char *action)
{
	struct event_act act = {.action = action};
	if (read_act(request, &act))
		act_as(request, act);
	request_answered(request);
}

/* On one of the workers's threads. */
static void release(void *request)
{
	act(request, "release");
}

static void skip(void *request)
{
	act(request, "skip");
}

static void cancel(void *request)
{
	act(request, "cancel");
}

void release_event(struct request *request)
{
	request_hand_on(request, release);
}

void skip_event(struct request *request)
{
	request_hand_on(request, skip);
}

void cancel_event(struct request *request)
{
	request_hand_on(request, cancel);
}
