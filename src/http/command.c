/* SPDX-License-Identifier: Apache-2.0 */
/* command.c -- a request that brings a command: from its key and body to the answer of its outcome.
 */
#include "http/command.h"

#include "base/json.h"
#include "command/result.h"
#include "contract/payload.h"
#include "http/failure.h"
#include "http/forward.h"
#include "http/key_header.h"
#include "http/meters.h"
#include "http/trace.h"
#include "http/upstream.h"

#include <stdio.h>
#include <string.h>

/* ---- The key -------------------------------------------------------------------------------- */

bool command_read_key(struct request *request)
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
	enum ibid_code code = key_header_read(arena, given, &request->key, &err);
	if (code == IBID_NOMEM)
		failure_answer(request, &err);
	else if (code)
		answer_problem(answer, arena, PROBLEM_KEY_INVALID, "%s", err.text);
	return !answer->status;
}

/* ---- The payload ---------------------------------------------------------------------------- */

bool command_is_json(const char *type)
{
	static const char wanted[] = "application/json";
	size_t size = strcspn(type, "; \t");
	return size == sizeof wanted - 1 && strncasecmp(type, wanted, size) == 0;
}

/* The path's parameters are members of the payload (B16): so they are checked, compared with an
 * earlier request's, and handed to the handler like any other. */
size_t command_params(struct request *request, struct extra *ret, size_t room)
{
	const char *at = request->route->path, *name;
	size_t size, count = 0;
	while (count < room && route_param(&at, &name, &size)) {
		ret[count].name = arena_strndup(&request->arena, name, size);
		ret[count].value = request->params[count];
		count += ret[count].name != NULL;
	}
	return count;
}

static bool add_extras(struct request *request, const struct json *body, const struct extra *extras,
                       size_t count, struct str *out)
{
	str_addc(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (json_member(body, extras[i].name)) {
			answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
			               "/%s is given by the %s, and not in the body", extras[i].name,
			               *extras[i].name == '@' ? "request" : "path");
			return false;
		}
		if (!extras[i].value)
			continue;
		str_adds(out, out->size > 1 ? "," : "");
		str_add_json(out, extras[i].name, strlen(extras[i].name));
		str_addc(out, ':');
		str_add_json(out, extras[i].value, strlen(extras[i].value));
	}
	return true;
}

bool command_join(struct request *request, const char *text, size_t size,
                  const struct extra *extras, size_t count)
{
	struct arena reading = {0};
	struct json *body = NULL;
	struct ibid_err err = {0};
	struct str out = STR_INIT((8 << 20));
	bool good = false;
	if (json_read(&reading, text, size, 0, &body, &err))
		failure_answer(request, &err);
	else if (body->type != JSON_OBJECT)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "the body must be a JSON object");
	else
		good = add_extras(request, body, extras, count, &out);
	if (good) {
		const char *rest = memchr(text, '{', size);
		if (body->child && out.size > 1)
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

static bool join_params(struct request *request)
{
	struct extra params[ROUTE_PARAMS_MAX];
	size_t count = command_params(request, params, ROUTE_PARAMS_MAX);
	bool empty = !request->payload_size;
	return command_join(request, empty ? "{}" : request->payload, empty ? 2 : request->payload_size,
	                    params, count);
}

/* ---- The resource --------------------------------------------------------------------------- */

static const char *join_resource(struct request *request, const char *resource, const char *value)
{
	return resource ? arena_printf(&request->arena, "%s/%s", resource, value) : value;
}

/* The resource that a path names: the values of its parameters. */
static const char *resource_of_path(struct request *request)
{
	const char *resource = NULL;
	for (size_t i = 0; i < ROUTE_PARAMS_MAX && request->params[i]; i++)
		resource = join_resource(request, resource, request->params[i]);
	return resource;
}

/* The same, where the parameters are members of the body. NULL: not all of them are there as a path
 * could have them; `*ret_missing` is the first such, in the arena. */
static const char *resource_of_members(struct request *request, const char **ret_missing)
{
	struct arena reading = {0};
	struct json *body = NULL;
	struct ibid_err ignored = {0}; /* what is no JSON object is refused later, with its reason */
	const char *at = request->contract->route, *name, *resource = NULL;
	size_t size;
	bool read = !json_read(&reading, request->payload, request->payload_size, 0, &body, &ignored) &&
	            body->type == JSON_OBJECT;
	while (!*ret_missing && route_param(&at, &name, &size)) {
		const char *member = arena_strndup(&request->arena, name, size);
		const struct json *value = read && member ? json_member(body, member) : NULL;
		if (value && value->type == JSON_STRING && value->size &&
		    !memchr(value->text, '\0', value->size))
			resource = join_resource(request, resource,
			                         arena_strndup(&request->arena, value->text, value->size));
		else
			*ret_missing = member ? member : "";
	}
	arena_release(&reading);
	return *ret_missing ? NULL : resource;
}

/* `resource=` and nothing else, once. NULL: it is not there, or the request is answered. */
static const char *read_resource_query(struct request *request)
{
	static const char name[] = "resource=";
	struct answer *answer = &request->answer;
	bool bad = false;
	const char *resource = request_query(request, "resource", &bad);
	size_t count = 0;
	for (const char *at = request->query; *at && !answer->status;) {
		size_t size = strcspn(at, "&");
		if (strncmp(at, name, sizeof name - 1) == 0 ? count++ > 0 : size > 0)
			answer_problem(answer, &request->arena, PROBLEM_BAD_REQUEST,
			               "the query has `%.*s`: it may only have resource, once",
			               size < 80 ? (int)size : 80, at);
		at += size + (at[size] == '&');
	}
	if (!answer->status && (bad || (count && (!resource || !*resource))))
		answer_problem(answer, &request->arena, PROBLEM_BAD_REQUEST,
		               bad ? "the query can't be decoded" : "the resource in the query is empty");
	return answer->status ? NULL : resource;
}

/* A command by its name is about the same resource as by its route (B16): what the path would say
 * is in the body; where no path says it, the query does. False: the request is answered. */
static bool read_resource(struct request *request)
{
	const struct contract *contract = request->contract;
	const char *given = read_resource_query(request), *missing = NULL;
	if (request->answer.status)
		return false;
	request->resource = given;
	if (!strchr(contract->route, '{') || (!given && !contract_asks_resource(contract)))
		return true;
	request->resource = resource_of_members(request, &missing);
	if (request->arena.failed)
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE, "out of memory");
	else if (given && request->resource && strcmp(given, request->resource) != 0)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "the resource in the query is %s, but what the path of %s has says %s in "
		               "the body",
		               given, contract->name, request->resource);
	else if (missing)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "/%s is missing: it belongs to the resource of %s (%s) and must be a text "
		               "in the body",
		               missing, contract->name, contract->route);
	return !request->answer.status;
}

/* False: the request is answered. */
static bool read_payload(struct request *request)
{
	bool many;
	const char *type = request_header(request, "Content-Type", &many);
	request->payload = request->body.size ? request->body.data : "";
	request->payload_size = request->body.size;
	if (request->body.size && (!type || !command_is_json(type))) {
		answer_problem(&request->answer, &request->arena, PROBLEM_MEDIA_TYPE,
		               "the Content-Type is %s", type ? type : "missing");
		return false;
	}
	if (!request->route->contract)
		return read_resource(request);
	return !strchr(request->route->path, '{') || join_params(request);
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
		              arena_printf(&request->arena, "%s/v1/operations/%s",
		                           request->generation->routes.prefix, result->command_id));
}

/* What a service behind the server said is kept as one text: its status, headers and bytes. */
static void show_upstream(struct request *request, const struct ibid_result *result)
{
	struct answer *answer = &request->answer;
	bool kept = result->decision == IBID_DECISION_EXECUTED ||
	            result->decision == IBID_DECISION_REJECTED;
	/* Read as JSON, and then as bytes. */
	if (kept && result->body_size && request_hold_answer(request, 2 * result->body_size))
		(void)upstream_show(&request->arena, result->body, result->body_size, answer);
}

void command_answer(struct request *request, struct ibid_result *result)
{
	struct answer *answer = &request->answer;
	bool problem = result->decision != IBID_DECISION_EXECUTED &&
	               result->decision != IBID_DECISION_LINKED && !result->own_body;
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
	bool unknown = result->decision == IBID_DECISION_UNKNOWN && *result->command_id;
	if (unknown || (problem && *result->incident))
		failure_answer_outcome(request, result);
	if (unknown || (answer->status == 202 && problem))
		add_location(request, answer);
	else if (*result->location)
		answer_header(answer, "Location", result->location);
	if (result->retry_after_us)
		answer_header(answer, "Retry-After", seconds(&request->arena, result->retry_after_us));
	if (request->contract->upstream.given)
		show_upstream(request, result);
}

static void done(void *user, enum ibid_code code, struct ibid_result *result,
                 const struct ibid_err *err)
{
	struct request *request = user;
	meters_command(request, code ? NULL : result);
	if (code)
		failure_answer(request, err);
	else
		command_answer(request, result);
	request_answered_together(request);
}

struct ibid_command command_of(struct request *request)
{
	return (struct ibid_command){
	    .size = sizeof(struct ibid_command),
	    .tenant = request->principal.tenant,
	    .operation = request->contract->name,
	    .key = request->key,
	    .payload = request->payload,
	    .payload_size = request->payload_size,
	    .client = request->principal.client,
	    .actor = request->principal.actor,
	    .resource = request->route->contract ? resource_of_path(request) : request->resource,
	    .correlation_id = request->correlation_id,
	    .causation_id = request->causation_id,
	    .traceparent = request->trace ? request->trace->traceparent : NULL,
	    .tracestate = request->trace ? request->trace->tracestate : NULL,
	};
}

enum { RECALL_BYTES = 16384 }; /* more than that to read would keep other connections waiting */

/* What came again a moment ago is told by the connections' own thread. */
static bool recall(struct request *request, const struct ibid_command *command)
{
	struct ibid_result *result;
	if (command->payload_size > RECALL_BYTES ||
	    !ledger_recall(request->generation->ibid->ledger, command, &result))
		return false;
	meters_command(request, result);
	command_answer(request, result);
	return true;
}

static void submit(struct request *request)
{
	struct ibid_err err = {0};
	struct ibid_command command = command_of(request);
	request->submitted_us = env_steady_us(request->server->env);
	if (recall(request, &command))
		return;
	request_suspend(request);
	if (!worker_pool_submit(request->generation->workers, &command, done, request, &err))
		return;
	meters_command(request, NULL);
	failure_answer(request, &err);
	request_answered(request);
}

static void run(struct request *request, const struct contract *contract)
{
	request->contract = contract;
	if (contract->upstream.given && request->route->contract)
		forward_command(request);
	else if (contract->upstream.given)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "operation %s is a request of its own: send %s", contract->name,
		               contract->route);
	else if (contract->staged.lease_us)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "operation %s is staged: it is run by %s", contract->name,
		               contract_run_by(contract));
	else if (command_read_key(request) && read_payload(request))
		submit(request);
}

void run_command(struct request *request)
{
	run(request, request->route->contract);
}

void run_operation(struct request *request)
{
	const struct operation *operation = ledger_operation(request->generation->ibid->ledger,
	                                                     request->params[0]);
	if (operation)
		run(request, operation->contract);
	else
		answer_problem(&request->answer, &request->arena, PROBLEM_NOT_FOUND,
		               "there is no operation %s", request->params[0]);
}
