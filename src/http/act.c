/* SPDX-License-Identifier: Apache-2.0 */
/* act.c -- requests by which people act: on an exception, an event, or what is paused.
 *
 * The acting person is the token's client, whatever a header says. */
#include "http/act.h"

#include "api/desk.h"
#include "base/canon.h"
#include "base/decimal.h"
#include "base/json.h"
#include "base/obj.h"
#include "http/command.h"
#include "http/document.h"
#include "http/failure.h"
#include "outbox/delivery.h"

#include <string.h>

/* ---- What is sent --------------------------------------------------------------------------- */

/* A body, and what the route and the path say. */
struct sent {
	struct action_request act;
	struct uuid id;          /* in the path; of the exception or the event */
	const char *destination; /* of the event */
	const char *kind, *name; /* of what is paused */
};

/* Members that are texts, the forms that have them, and where they go. */
#define BIT(n)   (1u << (n))
#define AT(name) offsetof(struct sent, name)
static const struct {
	const char *name;
	unsigned forms;
	size_t offset;
} texts[] = {
    {"reason", ~0u, AT(act.reason)},
    {"owner", BIT(FORM_ASSIGN), AT(act.owner)},
    {"assignee", BIT(FORM_ASSIGN), AT(act.assignee)},
    {"action", BIT(FORM_RESOLVE), AT(act.action)},
    {"resourceType", BIT(FORM_RESOLVE), AT(act.confirmation.resource_type)},
    {"resourceId", BIT(FORM_RESOLVE), AT(act.confirmation.resource_id)},
    {"destination", BIT(FORM_EVENT), AT(destination)},
    {"kind", BIT(FORM_PAUSE), AT(kind)},
    {"name", BIT(FORM_PAUSE), AT(name)},
};
enum { TEXTS = sizeof texts / sizeof *texts };

/* Of what reads the request, false: it is answered. */
static bool bad_member(struct request *request, const char *name, const char *what)
{
	answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST, "/%.80s %s", name, what);
	return false;
}

static bool read_text(struct request *request, const struct json *member, const char **ret)
{
	if (member->type != JSON_STRING || strlen(member->text) != member->size)
		return bad_member(request, member->name, "must be a text without NUL");
	*ret = member->text;
	return true;
}

static bool read_answer(struct request *request, const struct json *member, const char **ret)
{
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	canon_write(&out, member);
	*ret = out.failed ? NULL : arena_strndup(&request->arena, str_text(&out), out.size);
	str_release(&out);
	return *ret || bad_member(request, "answer", "is too large");
}

static bool read_status(struct request *request, const struct json *member, int *ret)
{
	struct decimal number;
	struct ibid_err err;
	if (member->type != JSON_NUMBER || decimal_read(member->text, member->size, &number, &err) ||
	    number.scale || number.units < 200 || number.units > 399)
		return bad_member(request, "status", "must be a number from 200 to 399");
	*ret = (int)number.units;
	return true;
}

static bool read_member(struct request *request, const struct json *member, struct sent *sent)
{
	unsigned form = BIT(request->route->act.form);
	for (size_t i = 0; i < TEXTS; i++)
		if ((texts[i].forms & form) && strcmp(member->name, texts[i].name) == 0)
			return read_text(request, member, (const char **)((char *)sent + texts[i].offset));
	if (form == BIT(FORM_RESOLVE) && strcmp(member->name, "answer") == 0)
		return read_answer(request, member, &sent->act.confirmation.body);
	if (form == BIT(FORM_RESOLVE) && strcmp(member->name, "status") == 0)
		return read_status(request, member, &sent->act.confirmation.status);
	return bad_member(request, member->name, "is not a member of it");
}

static bool read_body(struct request *request, struct sent *sent)
{
	bool many;
	const char *type = request_header(request, "Content-Type", &many);
	struct json *body = NULL;
	struct ibid_err err = {0};
	if (!type || !command_is_json(type)) {
		answer_problem(&request->answer, &request->arena, PROBLEM_MEDIA_TYPE,
		               "the Content-Type is %s", type ? type : "missing");
		return false;
	}
	if (json_read(&request->arena, request->body.size ? request->body.data : "", request->body.size,
	              0, &body, &err)) {
		failure_answer(request, &err);
		return false;
	}
	if (body->type != JSON_OBJECT) {
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "the body must be a JSON object");
		return false;
	}
	for (const struct json *member = body->child; member; member = member->next)
		if (!read_member(request, member, sent))
			return false;
	return true;
}

/* ---- What it is about ----------------------------------------------------------------------- */

static bool of_event(const struct request *request)
{
	return request->route->act.form == FORM_EVENT;
}

static bool read_id(struct request *request, struct uuid *ret)
{
	if (request->route->act.form == FORM_PAUSE || uuid_read(request->params[0], ret))
		return true;
	answer_problem(&request->answer, &request->arena, PROBLEM_NOT_FOUND, "there is no such %s",
	               of_event(request) ? "event" : "exception");
	return false;
}

static bool name_subject(struct request *request, struct sent *sent)
{
	struct action_request *act = &sent->act;
	enum pause_kind kind;
	act->item = sent->id;
	if (of_event(request)) {
		sent->destination = sent->destination ? sent->destination : "";
		act->subject_type = delivery_subject.type;
		act->subject_id = delivery_name(&request->arena, sent->destination, &sent->id);
	}
	if (request->route->act.form != FORM_PAUSE)
		return true;
	if (!sent->kind)
		return bad_member(request, "kind", "is missing");
	if (!pause_kind_read(sent->kind, &kind))
		return bad_member(request, "kind", "must be relay, destination or event");
	act->subject_type = sent->kind;
	act->subject_id = sent->name ? sent->name : "";
	return true;
}

/* ---- What is answered ----------------------------------------------------------------------- */

static const enum problem_kind problems[REFUSAL_COUNT] = {
    [REFUSED_NOT] = PROBLEM_INTERNAL,
    [REFUSED_INPUT] = PROBLEM_BAD_REQUEST,
    [REFUSED_ROLE] = PROBLEM_FORBIDDEN,
    [REFUSED_SAME_PERSON] = PROBLEM_SECOND_PERSON,
    [REFUSED_ACTION] = PROBLEM_ACTION_NOT_ALLOWED,
    [REFUSED_RESOLVED] = PROBLEM_EXCEPTION_RESOLVED,
    [REFUSED_WAITING] = PROBLEM_ALREADY_PROPOSED,
    [REFUSED_NO_PROPOSAL] = PROBLEM_NOTHING_PROPOSED,
    [REFUSED_NOT_HELD] = PROBLEM_NOT_HELD,
    [REFUSED_NAME] = PROBLEM_NOT_FOUND,
    [REFUSED_NO_CHANGE] = PROBLEM_NO_CHANGE,
};

static void answer_not_done(struct request *request, enum ibid_code code,
                            enum action_refusal refusal, struct ibid_err *err)
{
	if (code == IBID_REJECTED) {
		answer_problem(&request->answer, &request->arena, problems[refusal], "%s", err->text);
		return;
	}
	if (code == IBID_NOT_FOUND)
		err_set(err, IBID_NOT_FOUND, "there is no such %s",
		        of_event(request) ? "event" : "exception");
	if (code == IBID_UNKNOWN)
		err->code = IBID_UNAVAILABLE; /* asking again is safe */
	failure_answer(request, err);
}

static void answer_done(struct request *request, const struct sent *sent,
                        const struct action_result *result)
{
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	if (!of_event(request) && request->route->act.form != FORM_PAUSE) {
		answer_exception(request, &sent->id);
		return;
	}
	obj_begin(&out, NULL, '{');
	if (of_event(request))
		delivery_done_json(&out, sent->act.actor, &sent->id, sent->destination, result, ROW_SHARED);
	else
		row_add_json(&out, &pause_shape, &result->pause, ROW_SHARED);
	obj_end(&out, '}');
	answer_document(request, &out);
}

/* ---- Acting --------------------------------------------------------------------------------- */

/* On one of the workers's threads. */
static void act(void *user)
{
	struct request *request = user;
	struct ledger *ledger = request->generation->ibid->ledger;
	const struct desk desk = desk_of(ledger->store, request->server->env, ledger);
	const struct actor actor = {.tenant = request->principal.tenant,
	                            .client = request->principal.client,
	                            .token = request->token.id,
	                            .roles = request->principal.roles};
	const struct route_action *wanted = &request->route->act;
	struct sent sent = {.act = {.verb = wanted->verb, .action = wanted->action, .actor = &actor}};
	struct action_result result;
	struct ibid_err err = {0};
	if (read_id(request, &sent.id) && read_body(request, &sent) && name_subject(request, &sent)) {
		enum ibid_code code = desk_act(&desk, &request->arena, &sent.act, &result, &err);
		if (code)
			answer_not_done(request, code, result.refusal, &err);
		else
			answer_done(request, &sent, &result);
	}
	request_answered(request);
}

void run_action(struct request *request)
{
	request_hand_on(request, act);
}
