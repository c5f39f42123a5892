/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c -- requests about what is paused: look at it, pause, resume.
 *
 * Who acts is the token's client. Event types of another tenant are as if they were not paused. */
#include "outbox/pause.h"

#include "base/instant.h"
#include "base/obj.h"
#include "http/act.h"
#include "http/document.h"
#include "http/failure.h"
#include "http/pause.h"

#include <string.h>

/* ---- Documents ------------------------------------------------------------------------------ */

void add_pause(struct str *out, const struct pause_row *row)
{
	char since[INSTANT_TEXT_SIZE];
	instant_write(row->since_us, since);
	obj_begin(out, NULL, '{');
	obj_text(out, "kind", pause_kind_name(row->kind));
	if (*row->name)
		obj_text(out, "name", row->name);
	obj_text(out, "source", row->by_relay ? "relay" : "person");
	obj_text(out, "by", row->by);
	obj_text(out, "reason", row->reason);
	obj_text(out, "since", since);
	obj_end(out, '}');
}

static void answer_pause(struct request *request, const struct pause_row *row)
{
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	add_pause(&out, row);
	answer_document(request, &out);
}

/* ---- Looking -------------------------------------------------------------------------------- */

static void look_through(void *user)
{
	struct request *request = user;
	struct store *store = store_of(request);
	struct pause_row *rows = NULL;
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	struct ibid_err err = {0};
	size_t count = 0;
	if (store->ops->list_pauses(store, &request->arena, request->principal.tenant, &rows, &count,
	                            &err)) {
		failure_answer(request, &err);
	} else {
		obj_begin(&out, NULL, '{');
		obj_begin(&out, "items", '[');
		for (size_t i = 0; i < count; i++)
			add_pause(&out, &rows[i]);
		obj_end(&out, ']');
		obj_end(&out, '}');
		answer_document(request, &out);
	}
	request_answered(request);
}

void list_pauses(struct request *request)
{
	request_hand_on(request, look_through);
}

/* ---- What is sent --------------------------------------------------------------------------- */

static bool read_member(struct request *request, const struct json *member, struct pause_wish *wish)
{
	const char *text;
	if (!act_text(request, member, &text))
		return false;
	if (strcmp(member->name, "reason") == 0)
		wish->reason = text;
	else if (strcmp(member->name, "name") == 0)
		wish->name = text;
	else if (strcmp(member->name, "kind") != 0)
		return act_bad_member(request, member->name, "is not a member of it");
	else if (!pause_kind_read(text, &wish->kind))
		return act_bad_member(request, "kind", "must be relay, destination or event");
	return true;
}

/* False: the request is answered. */
static bool read_wish(struct request *request, struct pause_wish *wish)
{
	const struct json *body = act_body(request);
	if (!body)
		return false;
	for (const struct json *member = body->child; member; member = member->next)
		if (!read_member(request, member, wish))
			return false;
	return json_member(body, "kind") || act_bad_member(request, "kind", "is missing");
}

/* ---- Acting --------------------------------------------------------------------------------- */

static const enum problem_kind problems[] = {
    [PAUSE_REFUSED_NOT] = PROBLEM_INTERNAL,    [PAUSE_REFUSED_INPUT] = PROBLEM_BAD_REQUEST,
    [PAUSE_REFUSED_ROLE] = PROBLEM_FORBIDDEN,  [PAUSE_REFUSED_NAME] = PROBLEM_NOT_FOUND,
    [PAUSE_REFUSED_STATE] = PROBLEM_NO_CHANGE,
};

static void act_as(struct request *request, struct pause_wish wish)
{
	struct ledger *ledger = request->generation->ibid->ledger;
	const struct actor actor = act_actor(request);
	const struct pausing pausing = {ledger->store, request->server->env, ledger->contracts};
	struct pause_done done;
	struct ibid_err err = {0};
	wish.actor = &actor;
	enum ibid_code code = pause_act(&pausing, &request->arena, &wish, &done, &err);
	if (code == IBID_REJECTED) {
		answer_problem(&request->answer, &request->arena, problems[done.refusal], "%s", err.text);
	} else if (code) {
		if (code == IBID_UNKNOWN)
			err.code = IBID_UNAVAILABLE; /* asking again is safe */
		failure_answer(request, &err);
	} else {
		answer_pause(request, &done.row);
	}
}

static void act(struct request *request, bool resume)
{
	struct pause_wish wish = {.resume = resume};
	if (read_wish(request, &wish))
		act_as(request, wish);
	request_answered(request);
}

/* On one of the workers's threads. */
static void begin(void *request)
{
	act(request, false);
}

static void end(void *request)
{
	act(request, true);
}

void begin_pause(struct request *request)
{
	request_hand_on(request, begin);
}

void end_pause(struct request *request)
{
	request_hand_on(request, end);
}
