/* SPDX-License-Identifier: Apache-2.0 */
/* exception.c -- requests that look at human work. Another tenant's item is as if it were not
 * there. */
#include "desk/exception.h"
#include "base/obj.h"
#include "command/external_key.h"
#include "command/keep.h"
#include "http/act.h"
#include "http/document.h"
#include "http/failure.h"

#include <string.h>
#include <strings.h>

/* ---- Documents ------------------------------------------------------------------------------ */

static void add_action(struct str *out, const struct action_row *action)
{
	obj_begin(out, NULL, '{');
	add_id(out, "id", action->id);
	add_time(out, "at", action->at_us);
	obj_text(out, "action", action->action);
	obj_text(out, "actor", action->actor);
	obj_text(out, "role", action->role);
	obj_text(out, "token", action->token);
	obj_text(out, "reason", action->reason);
	if (action->parameters)
		obj_raw(out, "parameters", action->parameters);
	obj_end(out, '}');
}

static void add_proposal(struct str *out, const struct approval_row *proposal)
{
	obj_begin(out, "proposal", '{');
	add_id(out, "id", proposal->id);
	obj_text(out, "action", proposal->action);
	obj_text(out, "proposedBy", proposal->proposed_by);
	add_time(out, "proposedAt", proposal->proposed_us);
	obj_text(out, "reason", proposal->reason);
	obj_end(out, '}');
}

static void add_history(struct str *out, const struct exception_history *history)
{
	const struct approval_row *proposal = exception_proposal(history);
	if (proposal)
		add_proposal(out, proposal);
	obj_begin(out, "history", '[');
	for (size_t i = 0; i < history->action_count; i++)
		add_action(out, &history->actions[i]);
	obj_end(out, ']');
}

static void add_about(struct str *out, const struct exception_row *row)
{
	obj_text(out, "subjectType", row->subject_type);
	obj_text(out, "subjectId", row->subject_id);
	add_text(out, "key", row->business_key);
	add_text(out, "source", row->source);
	add_text(out, "payloadRef", row->payload_ref);
	add_text(out, "documentType", row->document_type);
	add_text(out, "documentId", row->document_id);
	add_text(out, "correlationId", row->correlation_id);
	add_text(out, "traceId", row->trace_id);
}

/* What a list leaves out. */
struct more {
	const char *external_key; /* how a partner knows its command; NULL: no partner does */
	struct exception_history history;
};

/* `more` NULL: in a list. */
static void add_item(struct str *out, struct request *request, const struct exception_row *row,
                     const struct more *more)
{
	int64_t now_us = env_wall_us(request->server->env);
	obj_begin(out, NULL, '{');
	add_id(out, "id", row->id);
	obj_text(out, "queue", exception_queue_name(row->queue));
	obj_text(out, "state", exception_state_name(row->state));
	obj_text(out, "severity", exception_severity_name(row->severity));
	obj_text(out, "owner", row->owner);
	add_text(out, "assignee", row->assignee);
	obj_text(out, "reason", row->reason);
	add_text(out, "detail", row->detail);
	add_text(out, "suggestion", row->suggestion);
	obj_bool(out, "retryable", row->retryable);
	add_names(out, "actions", &request->arena, row->actions);
	add_names(out, "needsApproval", &request->arena, row->needs_approval);
	add_about(out, row);
	add_time(out, "openedAt", row->opened_us);
	add_time(out, "dueAt", row->due_us);
	obj_bool(out, "overdue", row->state == EXCEPTION_OPEN && row->due_us && row->due_us < now_us);
	add_time(out, "resolvedAt", row->resolved_us);
	add_text(out, "resolution", row->resolution);
	add_text(out, "resolvedBy", row->resolved_by);
	add_text(out, "note", row->note);
	if (more) {
		add_text(out, "externalKey", more->external_key);
		add_text(out, "serviceAnswer",
		         keep_read_service_answer(&request->arena, row,
		                                  request->generation->ibid->ledger->keys));
		add_history(out, &more->history);
	}
	obj_end(out, '}');
}

/* ---- Looking -------------------------------------------------------------------------------- */

void answer_exception(struct request *request, const struct uuid *id)
{
	struct store *store = store_of(request);
	struct exception_row row;
	struct more more = {0};
	struct ibid_err err = {0};
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	enum ibid_code code = store_get_exception(store, &request->arena, request->principal.tenant, id,
	                                          &row, &err);
	if (!code)
		code = exception_history(store, &request->arena, &row, &more.history, &err);
	if (!code)
		code = external_key_of_exception(store, &request->arena, &row, &more.external_key, &err);
	if (code) {
		if (code == IBID_NOT_FOUND)
			err_set(&err, code, "there is no such exception");
		failure_answer(request, &err);
		return;
	}
	add_item(&out, request, &row, &more);
	answer_document(request, &out);
}

static void look_up(void *user)
{
	struct request *request = user;
	struct uuid id;
	if (uuid_read(request->params[0], &id))
		answer_exception(request, &id);
	else
		answer_problem(&request->answer, &request->arena, PROBLEM_NOT_FOUND,
		               "there is no such exception");
	request_answered(request);
}

void show_exception(struct request *request)
{
	request_hand_on(request, look_up);
}

static bool read_state(const char *given, int *ret)
{
	*ret = given ? -1 : EXCEPTION_OPEN;
	for (int i = 0; given && i < EXCEPTION_STATE_COUNT; i++)
		if (strcasecmp(given, exception_state_name((enum exception_state)i)) == 0)
			*ret = i;
	return *ret >= 0 || strcasecmp(given, "all") == 0;
}

static bool read_queue(const char *given, int *ret)
{
	enum exception_queue queue;
	*ret = -1;
	if (given && !exception_queue_read(given, &queue))
		return false;
	if (given)
		*ret = (int)queue;
	return true;
}

/* What is wrong with the query; NULL: nothing. */
static const char *read_filter(struct request *request, struct exception_filter *ret,
                               struct uuid *after)
{
	bool bad = false;
	const char *limit = request_query(request, "limit", &bad);
	const char *from = request_query(request, "after", &bad);
	const char *state = request_query(request, "state", &bad);
	const char *queue = request_query(request, "queue", &bad);
	*ret = (struct exception_filter){.tenant = request->principal.tenant,
	                                 .owner = request_query(request, "owner", &bad),
	                                 .assignee = request_query(request, "assignee", &bad),
	                                 .after = from ? after : NULL};
	if (bad)
		return "the query can't be decoded";
	if (!page_limit_read(limit, &ret->limit))
		return "limit must be a number from 1 to 1000";
	if (from && !uuid_read(from, after))
		return "after must be the id of an exception";
	if (!read_state(state, &ret->state))
		return "state must be open, resolved or all";
	if (!read_queue(queue, &ret->queue))
		return "queue must be dead-letter, business, reconciliation, security or data-quality";
	return NULL;
}

static void look_through(void *user)
{
	struct request *request = user;
	struct store *store = store_of(request);
	struct exception_filter filter;
	struct exception_row *rows = NULL;
	struct arena reading = {0};
	struct uuid after;
	struct str out = STR_INIT(DOCUMENT_BYTES_MAX);
	struct ibid_err err = {0};
	size_t count = 0;
	const char *wrong = read_filter(request, &filter, &after);
	if (wrong) {
		answer_problem(&request->answer, &request->arena, PROBLEM_BAD_REQUEST, "%s", wrong);
	} else if (store_list_exceptions(store, &reading, &filter, &rows, &count, &err)) {
		failure_answer(request, &err);
	} else {
		obj_begin(&out, NULL, '{');
		obj_begin(&out, "items", '[');
		for (size_t i = 0; i < count; i++)
			add_item(&out, request, &rows[i], NULL);
		obj_end(&out, ']');
		if (count == filter.limit)
			add_id(&out, "next", rows[count - 1].id);
		obj_end(&out, '}');
		answer_document(request, &out);
	}
	arena_release(&reading);
	request_answered(request);
}

void list_exceptions(struct request *request)
{
	request_hand_on(request, look_through);
}
