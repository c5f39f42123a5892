/* SPDX-License-Identifier: Apache-2.0 */
/* look.c -- requests that only look: one command, a list, a kind of problem, the server itself. */
#include "base/obj.h"
#include "command/command_json.h"
#include "command/incident.h"
#include "contract/payload.h"
#include "http/document.h"
#include "http/failure.h"
#include "http/request.h"

#include <string.h>

/* Operators look at all of the tenant, others at what their client sent. */
static bool sees_all(const struct request *request)
{
	return request->principal.roles & ROLE_OPERATOR;
}

/* ---- Documents ------------------------------------------------------------------------------ */

/* What a command that has no outcome waits for (B11). */
static const char *awaited(const struct ledger *ledger, const struct command_row *row)
{
	const struct operation *operation = ledger_operation(ledger, row->identity.operation);
	if (row->state == COMMAND_UNKNOWN && operation && operation->contract->upstream.inquiry.url)
		return "the service, which is asked whether it was done";
	if (row->state == COMMAND_UNKNOWN)
		return "a person: nobody knows whether it was done";
	if (command_unbound(row))
		return "the corrected payload: the key is bound to none yet";
	if (row->state != COMMAND_IN_PROGRESS)
		return NULL;
	return row->stale ? "recovery: its worker went silent" : "its worker";
}

static void add_command(struct str *out, struct request *request, const struct command_row *row,
                        bool whole)
{
	const struct command_shown shown = {
	    .row = row,
	    .detail = sees_all(request) ? row->text : incident_client_text(row),
	    .awaits = awaited(request->generation->ibid->ledger, row),
	    .whole = whole,
	};
	obj_begin(out, NULL, '{');
	command_json(out, &request->arena, &shown, ROW_SHARED);
	obj_end(out, '}');
}

/* ---- Commands ------------------------------------------------------------------------------- */

static bool may_see(const struct request *request, const char *client)
{
	return sees_all(request) || (client && strcmp(client, request->principal.client) == 0);
}

static enum ibid_code read_origin(struct request *request, struct command_row *row,
                                  struct ibid_err *err)
{
	struct store *store = store_of(request);
	struct audit_row *audit = NULL;
	size_t count = 0;
	if (row->state != COMMAND_COMPLETED)
		return IBID_OK;
	enum ibid_code code = store_list_audit(store, &request->arena, row->identity.tenant, &row->id,
	                                       1, &audit, &count, err);
	if (code || !count)
		return code;
	command_take_origin(row, audit);
	return IBID_OK;
}

/* What is another tenant's, or not to be seen, is as if it were not there. */
static void answer_command(struct request *request, enum ibid_code code, struct command_row *row,
                           struct ibid_err *err)
{
	if (!code && may_see(request, row->client))
		code = read_origin(request, row, err);
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	if (code == IBID_NOT_FOUND || (!code && !may_see(request, row->client))) {
		answer_problem(&request->answer, &request->arena, PROBLEM_NOT_FOUND,
		               "there is no such command");
	} else if (code) {
		failure_answer(request, err);
	} else {
		add_command(&out, request, row, true);
		if (row->state == COMMAND_IN_PROGRESS)
			answer_header(&request->answer, "Retry-After", "1");
		answer_document(request, &out);
	}
}

static void look_up_operation(void *user)
{
	struct request *request = user;
	struct store *store = store_of(request);
	struct command_row row;
	struct uuid id;
	struct ibid_err err = {0};
	enum ibid_code code = IBID_NOT_FOUND;
	if (uuid_read(request->params[0], &id))
		code = store_get_command(store, &request->arena, request->principal.tenant, &id, NULL, &row,
		                         &err);
	answer_command(request, code, &row, &err);
	request_answered(request);
}

void show_operation(struct request *request)
{
	request_hand_on(request, look_up_operation);
}

static void look_up_command(void *user)
{
	struct request *request = user;
	struct store *store = store_of(request);
	bool bad = false;
	const char *resource = request_query(request, "resource", &bad);
	const char *client = request_query(request, "client", &bad);
	struct sender sender = {.tenant = request->principal.tenant,
	                        .client = client && *client ? client : request->principal.client,
	                        .actor = request->principal.actor,
	                        .resource = resource ? resource : ""};
	struct identity identity = {
	    .tenant = sender.tenant, .operation = request->contract->name, .key = request->params[1]};
	struct command_row row;
	struct ibid_err err = {0};
	enum ibid_code code =
	    bad ? err_set(
	              &err, IBID_INVALID,
	              "the query of the path has a %% that no two hex digits follow, or holds a NUL")
	        : scope_of(&request->arena, request->contract, &sender, &identity.scope, &err);
	if (!code)
		code = store_get_command(store, &request->arena, identity.tenant, NULL, &identity, &row,
		                         &err);
	answer_command(request, code, &row, &err);
	request_answered(request);
}

void show_command(struct request *request)
{
	const struct operation *operation = ledger_operation(request->generation->ibid->ledger,
	                                                     request->params[0]);
	if (!operation) {
		answer_problem(&request->answer, &request->arena, PROBLEM_NOT_FOUND,
		               "there is no operation %s", request->params[0]);
		return;
	}
	request->contract = operation->contract;
	request->key = request->params[1];
	request_hand_on(request, look_up_command);
}

/* False: the request is answered. */
static bool read_filter(struct request *request, struct command_filter *ret, struct uuid *after)
{
	bool bad = false;
	const char *limit = request_query(request, "limit", &bad);
	const char *from = request_query(request, "after", &bad);
	const char *state = request_query(request, "state", &bad);
	bool counted = page_limit_read(limit, &ret->limit);
	ret->tenant = request->principal.tenant;
	ret->operation = request_query(request, "operation", &bad);
	ret->key = request_query(request, "key", &bad);
	ret->client = sees_all(request) ? request_query(request, "client", &bad)
	                                : request->principal.client;
	ret->state = -1;
	for (int i = 0; state && i < COMMAND_STATE_COUNT; i++)
		if (strcasecmp(state, command_state_name((enum command_state)i)) == 0)
			ret->state = i;
	ret->after = from ? after : NULL;
	if (bad)
		answer_problem(
		    &request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		    "the query of the path has a %% that no two hex digits follow, or holds a NUL");
	else if (!counted)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "limit must be a number from 1 to %d", PAGE_MAX);
	else if (from && !uuid_read(from, after))
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "after must be the id of a command");
	else if (state && ret->state < 0)
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST,
		               "there is no state %s", state);
	return !request->answer.status;
}

static void look_through(void *user)
{
	struct request *request = user;
	struct store *store = store_of(request);
	struct command_filter filter = {0};
	struct command_row *rows = NULL;
	struct arena reading = {0}; /* the rows need not live as long as the answer */
	struct uuid after;
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	struct ibid_err err = {0};
	size_t count = 0;
	if (!read_filter(request, &filter, &after)) {
		request_answered(request);
		return;
	}
	if (store_list_commands(store, &reading, &filter, &rows, &count, &err)) {
		failure_answer(request, &err);
	} else {
		obj_begin(&out, NULL, '{');
		obj_begin(&out, "items", '[');
		for (size_t i = 0; i < count; i++)
			add_command(&out, request, &rows[i], false);
		obj_end(&out, ']');
		if (count == filter.limit)
			obj_id(&out, "next", rows[count - 1].id);
		obj_end(&out, '}');
		answer_document(request, &out);
	}
	arena_release(&reading);
	request_answered(request);
}

void list_commands(struct request *request)
{
	request_hand_on(request, look_through);
}

/* ---- The server itself ---------------------------------------------------------------------- */

void run_health(struct request *request)
{
	answer_json(&request->answer, 200, "{\"status\":\"alive\"}");
}

/* Whoever asks may be anybody: no name of a file. */
static const char *store_trouble(enum ibid_code code)
{
	switch (code) {
	case IBID_OK: return NULL;
	case IBID_GONE: return "the store's file was deleted, renamed or replaced";
	case IBID_FULL: return "the store has no space left";
	case IBID_IO:
	case IBID_UNKNOWN: return "the store fails to read or to write";
	default: return "the store can't be reached";
	}
}

void run_ready(struct request *request)
{
	struct server *server = request->server;
	const char *wrong = atomic_load(&server->stopping)
	                        ? "the server is stopping"
	                        : store_trouble(atomic_load(&server->store_code));
	if (wrong)
		answer_problem(&request->answer, &request->arena, PROBLEM_UNAVAILABLE, "%s", wrong);
	else
		answer_json(&request->answer, 200, "{\"status\":\"ready\"}");
}

void run_problem(struct request *request)
{
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	for (size_t i = 0; i < PROBLEM_KINDS; i++) {
		const struct problem_info *info = &problem_infos[i];
		if (strcmp(info->slug, request->params[0]) != 0)
			continue;
		obj_begin(&out, NULL, '{');
		str_adds(&out, "\"type\":\"/problems/");
		str_adds(&out, info->slug);
		str_addc(&out, '"');
		obj_text(&out, "title", info->title);
		obj_int(&out, "status", info->status);
		obj_text(&out, "meaning", info->meaning);
		obj_end(&out, '}');
		answer_document(request, &out);
		return;
	}
	answer_problem(&request->answer, &request->arena, PROBLEM_NOT_FOUND, "there is no problem %s",
	               request->params[0]);
}
