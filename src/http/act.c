/* SPDX-License-Identifier: Apache-2.0 */
#include "http/act.h"

#include "http/command.h"
#include "http/failure.h"

#include <string.h>

static const enum problem_kind problems[] = {
    [REFUSED_NOT] = PROBLEM_INTERNAL,
    [REFUSED_INPUT] = PROBLEM_BAD_REQUEST,
    [REFUSED_ROLE] = PROBLEM_FORBIDDEN,
    [REFUSED_SAME_PERSON] = PROBLEM_SECOND_PERSON,
    [REFUSED_ACTION] = PROBLEM_ACTION_NOT_ALLOWED,
    [REFUSED_RESOLVED] = PROBLEM_EXCEPTION_RESOLVED,
    [REFUSED_WAITING] = PROBLEM_ALREADY_PROPOSED,
    [REFUSED_NO_PROPOSAL] = PROBLEM_NOTHING_PROPOSED,
    [REFUSED_NOT_HELD] = PROBLEM_NOT_HELD,
};

bool act_bad_member(struct request *request, const char *name, const char *what)
{
	answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST, "/%.80s %s", name, what);
	return false;
}

bool act_text(struct request *request, const struct json *member, const char **ret)
{
	if (member->type != JSON_STRING || strlen(member->text) != member->size)
		return act_bad_member(request, member->name, "must be a text without NUL");
	*ret = member->text;
	return true;
}

const struct json *act_body(struct request *request)
{
	bool many;
	const char *type = request_header(request, "Content-Type", &many);
	struct json *body = NULL;
	struct ibid_err err = {0};
	if (!type || !command_is_json(type)) {
		answer_problem(&request->answer, &request->arena, PROBLEM_MEDIA_TYPE,
		               "the Content-Type is %s", type ? type : "missing");
		return NULL;
	}
	if (json_read(&request->arena, request->body.size ? request->body.data : "", request->body.size,
	              0, &body, &err))
		failure_answer(request, &err);
	else if (body->type != JSON_OBJECT)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "the body must be a JSON object");
	return request->answer.status ? NULL : body;
}

struct actor act_actor(const struct request *request)
{
	return (struct actor){.tenant = request->principal.tenant,
	                      .client = request->principal.client,
	                      .token = request->token.id,
	                      .roles = request->principal.roles};
}

struct acting act_acting(const struct request *request)
{
	struct ledger *ledger = request->generation->ibid->ledger;
	return (struct acting){.store = ledger->store, .env = request->server->env, .ledger = ledger};
}

void act_not_done(struct request *request, enum ibid_code code, enum act_refusal refusal,
                  struct ibid_err *err)
{
	if (code == IBID_REJECTED) {
		answer_problem(&request->answer, &request->arena, problems[refusal], "%s", err->text);
		return;
	}
	if (code == IBID_UNKNOWN)
		err->code = IBID_UNAVAILABLE; /* asking again is safe */
	failure_answer(request, err);
}
