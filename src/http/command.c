/* SPDX-License-Identifier: Apache-2.0 */
/* command.c -- a request that brings a command: from its key and body to the answer of its outcome.
 */
#include "base/json.h"
#include "contract/payload.h"
#include "http/meters.h"
#include "ledger/result.h"

#include <stdio.h>
#include <string.h>

/* ---- The key -------------------------------------------------------------------------------- */

/* A structured-field string: "..." with \" and \\ escaped. NULL: it is none. */
static const char *unquote(struct arena *arena, const char *text)
{
	size_t size = strlen(text);
	char *key = arena_strndup(arena, text, size), *to = key;
	if (!key || size < 2 || text[size - 1] != '"')
		return NULL;
	for (size_t i = 1; i < size - 1; i++) {
		if (text[i] == '"')
			return NULL;
		if (text[i] == '\\') {
			i++;
			if (i == size - 1 || (text[i] != '"' && text[i] != '\\'))
				return NULL;
		}
		*to++ = text[i];
	}
	*to = 0;
	return key;
}

/* False: the request is answered. */
static bool read_key(struct request *request)
{
	struct answer *answer = &request->answer;
	struct arena *arena = &request->arena;
	struct ibid_err err = {0};
	bool many;
	const char *given = request_header(request, "Idempotency-Key", &many);
	if (request->contract->key.from != KEY_HEADER)
		return true; /* the payload says which intent it is */
	if (many) {
		answer_problem(answer, arena, PROBLEM_KEY_INVALID, "there are several Idempotency-Keys");
		return false;
	}
	if (!given) {
		answer_problem(answer, arena, PROBLEM_KEY_MISSING,
		               "send an Idempotency-Key: a new one for each intent, the same for a retry");
		return false;
	}
	request->key = *given == '"' ? unquote(arena, given) : given;
	if (!request->key)
		answer_problem(answer, arena, PROBLEM_KEY_INVALID,
		               "the quotes of the key are not in order");
	else if (key_check(request->key, &err))
		answer_problem(answer, arena, PROBLEM_KEY_INVALID, "%s", err.text);
	return !answer->status;
}

/* ---- The payload ---------------------------------------------------------------------------- */

static bool is_json(const char *type)
{
	static const char wanted[] = "application/json";
	size_t size = strcspn(type, "; \t");
	return size == sizeof wanted - 1 && strncasecmp(type, wanted, size) == 0;
}

/* The path's parameters are members of the payload (B16): so they are checked, compared with an
 * earlier request's, and handed to the handler like any other. */
static bool add_params(struct request *request, const struct json *body, struct str *out)
{
	const char *at = request->route->path, *name;
	size_t size;
	str_addc(out, '{');
	for (size_t i = 0; route_param(&at, &name, &size); i++) {
		char member[64];
		snprintf(member, sizeof member, "%.*s", (int)size, name);
		if (body && json_member(body, member)) {
			answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
			               "/%s is given by the path, and not in the body", member);
			return false;
		}
		str_adds(out, i ? "," : "");
		str_add_json(out, member, strlen(member));
		str_addc(out, ':');
		str_add_json(out, request->params[i], strlen(request->params[i]));
	}
	return true;
}

static bool join_params(struct request *request)
{
	struct arena reading = {0};
	struct json *body = NULL;
	struct ibid_err err = {0};
	struct str out = STR_INIT((8 << 20));
	const char *text = request->payload_size ? request->payload : "{}";
	size_t size = request->payload_size ? request->payload_size : 2;
	bool good = false;
	if (json_read(&reading, text, size, 0, &body, &err))
		answer_error(&request->answer, &request->arena, &err);
	else if (body->type != JSON_OBJECT)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "the body must be a JSON object");
	else
		good = add_params(request, body, &out);
	if (good) {
		const char *rest = memchr(text, '{', size);
		if (body->child)
			str_addc(&out, ',');
		str_add(&out, rest + 1, size - (size_t)(rest + 1 - text));
		request->payload = arena_strndup(&request->arena, str_text(&out), out.size);
		request->payload_size = out.size;
		good = request->payload && !out.failed;
		if (!good)
			answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE, "out of memory");
	}
	str_release(&out);
	arena_release(&reading);
	return good;
}

/* False: the request is answered. */
static bool read_payload(struct request *request)
{
	bool many;
	const char *type = request_header(request, "Content-Type", &many);
	request->payload = request->body.size ? request->body.data : "";
	request->payload_size = request->body.size;
	if (request->body.size && (!type || !is_json(type))) {
		answer_problem(&request->answer, &request->arena, PROBLEM_MEDIA_TYPE,
		               "the Content-Type is %s", type ? type : "missing");
		return false;
	}
	if (request->route->contract && strchr(request->route->path, '{'))
		return join_params(request);
	return true;
}

/* The resource that a path names: the values of its parameters. */
static const char *resource_of(struct request *request)
{
	const char *resource = NULL;
	for (size_t i = 0; i < ROUTE_PARAMS_MAX && request->params[i]; i++)
		resource = resource ? arena_printf(&request->arena, "%s/%s", resource, request->params[i])
		                    : request->params[i];
	return resource;
}

/* ---- The outcome ---------------------------------------------------------------------------- */

static const char *seconds(struct arena *arena, int64_t us)
{
	int64_t up = (us + 999999) / 1000000;
	return arena_printf(arena, "%lld", (long long)(up ? up : 1));
}

static void add_location(struct request *request, struct answer *answer)
{
	const struct ibid_result *result = answer->result;
	if (*result->command_id)
		answer_header(answer, "Location",
		              arena_printf(&request->arena, "/v1/operations/%s", result->command_id));
}

/* The same outcome gives the same bytes, whoever asks, and whenever (B03). */
static void answer_result(struct request *request, struct ibid_result *result)
{
	struct answer *answer = &request->answer;
	bool problem = result->decision != IBID_DECISION_EXECUTED &&
	               result->decision != IBID_DECISION_LINKED;
	answer->result = result;
	answer->status = result->status;
	answer->body = result->body_size ? result->body : NULL;
	answer->size = result->body_size;
	answer->type = problem ? "application/problem+json" : "application/json";
	request->decision = ibid_decision_name(result->decision);
	if (*result->command_id) {
		request->command_id = result->command_id;
		answer_header(answer, "Ibid-Command-Id", result->command_id);
	}
	if (result->replayed)
		answer_header(answer, "Idempotent-Replayed", "true");
	if (result->decision == IBID_DECISION_IN_PROGRESS && result->status == 409)
		answer->status = (int)request->server->settings->in_progress;
	if (result->decision == IBID_DECISION_UNKNOWN && *result->command_id)
		answer->status = 202;
	if (answer->status == 202 && problem)
		add_location(request, answer);
	else if (*result->location)
		answer_header(answer, "Location", result->location);
	if (result->retry_after_us)
		answer_header(answer, "Retry-After", seconds(&request->arena, result->retry_after_us));
}

static void done(void *user, enum ibid_code code, struct ibid_result *result,
                 const struct ibid_err *err)
{
	struct request *request = user;
	meters_command(request, code ? NULL : result);
	if (code)
		answer_error(&request->answer, &request->arena, err);
	else
		answer_result(request, result);
	request_answered_together(request);
}

static void submit(struct request *request)
{
	struct ibid_err err = {0};
	bool many;
	request->correlation_id = request_header(request, "Correlation-Id", &many);
	request->causation_id = request_header(request, "Causation-Id", &many);
	request->submitted_us = env_steady_us(request->server->env);
	struct ibid_command command = {
	    .size = sizeof command,
	    .tenant = request->principal.tenant,
	    .operation = request->contract->name,
	    .key = request->key,
	    .payload = request->payload,
	    .payload_size = request->payload_size,
	    .client = request->principal.client,
	    .actor = request->principal.actor,
	    .resource = request->route->contract ? resource_of(request) : NULL,
	    .correlation_id = request->correlation_id,
	    .causation_id = request->causation_id,
	};
	request_suspend(request);
	if (!crew_submit(request->house->crew, &command, done, request, &err))
		return;
	meters_command(request, NULL);
	answer_error(&request->answer, &request->arena, &err);
	request_answered(request);
}

static void run(struct request *request, const struct contract *contract)
{
	request->contract = contract;
	if (contract->staged.lease_us)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "operation %s is staged: it is run by a program that calls ibid_stage",
		               contract->name);
	else if (read_key(request) && read_payload(request))
		submit(request);
}

void run_command(struct request *request)
{
	run(request, request->route->contract);
}

void run_operation(struct request *request)
{
	const struct operation *operation = ledger_operation(request->house->ibid->ledger,
	                                                     request->params[0]);
	if (operation)
		run(request, operation->contract);
	else
		answer_problem(&request->answer, &request->arena, PROBLEM_NOT_FOUND,
		               "there is no operation %s", request->params[0]);
}
