/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/exception.h"

#include "base/obj.h"
#include "base/traceparent.h"

enum { HISTORY_MAX = 1000 };

#define WITHIN_US (INT64_C(4) * 3600 * 1000000) /* where no contract says */

struct exception_row exception_make(const struct exception_row *about,
                                    const struct retry_stop *stop, struct env *env, int64_t now_us,
                                    int64_t within_us)
{
	struct exception_row row = *about;
	row.id = uuid_v7(env);
	row.queue = stop->queue;
	row.state = EXCEPTION_OPEN;
	row.severity = stop->severity;
	row.suggestion = row.suggestion ? row.suggestion : stop->suggestion;
	row.retryable = stop->retryable;
	row.actions = stop->actions;
	row.opened_us = now_us;
	row.due_us = now_us + (within_us ? within_us : WITHIN_US);
	return row;
}

bool exception_overdue(const struct exception_row *row, int64_t now_us)
{
	return row->state == EXCEPTION_OPEN && row->due_us && row->due_us < now_us;
}

const char *exception_trace_id(struct arena *arena, const char *traceparent)
{
	struct traceparent read;
	return traceparent && traceparent_read(traceparent, &read) ? arena_strdup(arena, read.trace_id)
	                                                           : NULL;
}

enum ibid_code exception_newest(struct store *store, struct arena *arena,
                                struct exception_filter filter, const struct exception_row **ret,
                                struct ibid_err *err)
{
	struct exception_row *rows = NULL;
	size_t count = 0;
	filter.queue = -1;
	filter.limit = 1;
	enum ibid_code code = store_list_exceptions(store, arena, &filter, &rows, &count, err);
	if (!code)
		*ret = count ? rows : NULL;
	return code;
}

enum ibid_code exception_history(struct store *store, struct arena *arena,
                                 const struct exception_row *item, struct exception_history *ret,
                                 struct ibid_err *err)
{
	struct exception_history history = {0};
	char id[UUID_TEXT_SIZE];
	uuid_write(item->id, id);
	enum ibid_code code = store_list_actions(store, arena, item->tenant, "exception", id,
	                                         HISTORY_MAX, &history.actions, &history.action_count,
	                                         err);
	if (!code)
		code = store_list_approvals(store, arena, item->tenant, "exception", id, HISTORY_MAX,
		                            &history.approvals, &history.approval_count, err);
	if (!code)
		*ret = history;
	return code;
}

const struct approval_row *exception_proposal(const struct exception_history *history)
{
	bool waits = history->approval_count && history->approvals->decision == APPROVAL_WAITS;
	return waits ? history->approvals : NULL;
}

static void more_json(struct str *out, const struct exception_more *more, enum row_view view)
{
	const struct exception_history *history = &more->history;
	const struct approval_row *proposal = exception_proposal(history);
	obj_text_if(out, "externalKey", more->external_key);
	obj_text_if(out, "serviceAnswer", more->service_answer);
	if (proposal)
		row_add_object(out, "proposal", &approval_shape, proposal, view);
	row_add_list(out, "history", &action_shape, history->actions, history->action_count, view);
	row_add_list(out, "approvals", &approval_shape, history->approvals, history->approval_count,
	             view);
}

void exception_json(struct str *out, const struct exception_row *row,
                    const struct exception_more *more, int64_t now_us, enum row_view view)
{
	obj_begin(out, NULL, '{');
	row_add_json(out, &exception_shape, row, view);
	obj_bool(out, "overdue", exception_overdue(row, now_us));
	if (more)
		more_json(out, more, view);
	obj_end(out, '}');
}
