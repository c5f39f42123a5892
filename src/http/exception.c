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

/* ---- Looking -------------------------------------------------------------------------------- */

void answer_exception(struct request *request, const struct uuid *id)
{
	struct store *store = store_of(request);
	struct exception_row row;
	struct exception_more more = {0};
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
	more.service_answer = keep_read_service_answer(&request->arena, &row,
	                                               request->generation->ibid->ledger->keys);
	exception_json(&out, &row, &more, env_wall_us(request->server->env), ROW_SHARED);
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
			exception_json(&out, &rows[i], NULL, env_wall_us(request->server->env), ROW_SHARED);
		obj_end(&out, ']');
		if (count == filter.limit)
			obj_id(&out, "next", rows[count - 1].id);
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
