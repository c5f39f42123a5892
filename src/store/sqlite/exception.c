/* SPDX-License-Identifier: Apache-2.0 */
/* exception.c -- human work: one open item per queue and subject. */
#include "store/sqlite/lite.h"

enum ibid_code lite_open_exception(struct lite_conn *conn, const struct exception_row *row,
                                   struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_exception_put, &run, err);
	lite_bind_text(&run, row->tenant);
	lite_bind_uuid(&run, &row->id);
	lite_bind_text(&run, exception_queue_name(row->queue));
	lite_bind_text(&run, exception_severity_name(row->severity));
	lite_bind_text(&run, row->subject_type);
	lite_bind_text(&run, row->subject_id);
	lite_bind_text(&run, row->business_key);
	lite_bind_text(&run, row->source);
	lite_bind_text(&run, row->payload_ref);
	lite_bind_text(&run, row->reason);
	lite_bind_text(&run, row->detail);
	lite_bind_text(&run, row->suggestion);
	lite_bind_text(&run, row->owner);
	lite_bind_int(&run, row->retryable);
	lite_bind_text(&run, row->actions);
	lite_bind_text(&run, row->correlation_id);
	lite_bind_text(&run, row->document_type);
	lite_bind_text(&run, row->document_id);
	lite_bind_int(&run, row->opened_us);
	lite_bind_int(&run, row->due_us);
	lite_bind_text(&run, row->trace_id);
	lite_bind_text(&run, row->needs_approval ? row->needs_approval : "");
	lite_bind_text(&run, row->service_answer);
	return lite_conclude(&run, code, err);
}

enum ibid_code lite_assign_exception(struct tx *base, const struct exception_assignment *to,
                                     struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	struct lite_run run;
	enum ibid_code code = lite_tx_start(tx, LITE_exception_assign, &run, err);
	lite_bind_text(&run, to->tenant);
	lite_bind_uuid(&run, &to->id);
	lite_bind_text(&run, to->owner);
	lite_bind_text(&run, to->assignee);
	return lite_finish_one(tx, &run, code, "the exception is not open", err);
}

/* This one, which must be open. */
static enum ibid_code end_item(struct lite_tx *tx, const struct exception_end *end,
                               struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(tx->conn, LITE_exception_end, &run, err);
	lite_bind_text(&run, end->tenant);
	lite_bind_uuid(&run, end->id);
	lite_bind_int(&run, end->resolved_us);
	lite_bind_text(&run, end->resolution);
	lite_bind_text(&run, end->resolved_by);
	lite_bind_text(&run, end->note);
	code = lite_finish_one(tx, &run, code, "the exception is not open", err);
	if (code)
		return code;
	code = lite_start(tx->conn, LITE_approval_lapse, &run, err);
	lite_bind_text(&run, end->tenant);
	lite_bind_uuid(&run, end->id);
	lite_bind_int(&run, end->resolved_us);
	lite_bind_text(&run, end->resolved_by);
	lite_bind_uuid(&run, end->approval);
	return lite_tx_failed(tx, lite_conclude(&run, code, err), err);
}

static void bind_subject(struct lite_run *run, const struct exception_end *end)
{
	lite_bind_text(run, end->tenant);
	lite_bind_text(run, exception_queue_name(end->queue));
	lite_bind_text(run, end->subject_type);
	lite_bind_text(run, end->subject_id);
	lite_bind_int(run, end->resolved_us);
}

/* The one that is open, if there is one. */
static enum ibid_code end_open(struct lite_tx *tx, const struct exception_end *end,
                               struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(tx->conn, LITE_approval_lapse_open, &run, err);
	bind_subject(&run, end);
	lite_bind_text(&run, end->resolved_by);
	code = lite_conclude(&run, code, err);
	if (code)
		return lite_tx_failed(tx, code, err);
	code = lite_start(tx->conn, LITE_exception_resolve, &run, err);
	bind_subject(&run, end);
	lite_bind_text(&run, end->resolution);
	lite_bind_text(&run, end->resolved_by);
	lite_bind_text(&run, end->note);
	return lite_conclude(&run, code, err);
}

enum ibid_code lite_put_exception(struct tx *base, const struct exception_row *row,
                                  struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	enum ibid_code code = lite_tx_ready(tx, err);
	return code ? code : lite_tx_failed(tx, lite_open_exception(tx->conn, row, err), err);
}

enum ibid_code lite_resolve_exception(struct tx *base, const struct exception_end *end,
                                      struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	enum ibid_code code = lite_tx_ready(tx, err);
	if (code)
		return code;
	return end->id ? end_item(tx, end, err) : end_open(tx, end, err);
}

static enum ibid_code read_row(struct lite_run *run, struct arena *arena, struct exception_row *ret,
                               struct ibid_err *err)
{
	ret->tenant = lite_read_text(run, arena);
	ret->id = lite_read_uuid(run);
	const char *queue = lite_read_text(run, arena), *state = lite_read_text(run, arena);
	const char *severity = lite_read_text(run, arena);
	ret->subject_type = lite_read_text(run, arena);
	ret->subject_id = lite_read_text(run, arena);
	ret->business_key = lite_read_text(run, arena);
	ret->source = lite_read_text(run, arena);
	ret->payload_ref = lite_read_text(run, arena);
	ret->reason = lite_read_text(run, arena);
	ret->detail = lite_read_text(run, arena);
	ret->suggestion = lite_read_text(run, arena);
	ret->owner = lite_read_text(run, arena);
	ret->retryable = lite_read_small(run) != 0;
	ret->actions = lite_read_text(run, arena);
	ret->correlation_id = lite_read_text(run, arena);
	ret->document_type = lite_read_text(run, arena);
	ret->document_id = lite_read_text(run, arena);
	ret->opened_us = lite_read_int(run);
	ret->due_us = lite_read_int(run);
	ret->resolved_us = lite_read_int(run);
	ret->resolution = lite_read_text(run, arena);
	ret->resolved_by = lite_read_text(run, arena);
	ret->note = lite_read_text(run, arena);
	ret->trace_id = lite_read_text(run, arena);
	ret->needs_approval = lite_read_text(run, arena);
	ret->assignee = lite_read_text(run, arena);
	ret->service_answer = lite_read_text(run, arena);
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (!exception_queue_read(queue, &ret->queue) || !exception_state_read(state, &ret->state) ||
	    !exception_severity_read(severity, &ret->severity))
		return err_set(err, IBID_SCHEMA, "an exception is in queue %s, %s, %s; upgrade ibid", queue,
		               state, severity);
	return IBID_OK;
}

static enum ibid_code read_rows(struct lite_rows *rows, struct lite_run *run, enum ibid_code code,
                                struct ibid_err *err)
{
	while (lite_row(run, &code, err)) {
		struct exception_row *row = lite_rows_add(rows);
		code = row ? read_row(run, rows->arena, row, err)
		           : err_set(err, IBID_NOMEM, "out of memory");
	}
	lite_end(run);
	return code;
}

enum ibid_code lite_get_exception(struct store *base, struct arena *arena, const char *tenant,
                                  const struct uuid *id, struct exception_row *ret,
                                  struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct exception_row)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_start(conn, LITE_exception_get, &run, err);
	lite_bind_text(&run, tenant);
	lite_bind_uuid(&run, id);
	code = read_rows(&rows, &run, code, err);
	lite_reader_give(store, conn);
	if (code)
		return code;
	if (!rows.count)
		return err_set(err, IBID_NOT_FOUND, "no such exception");
	*ret = *(struct exception_row *)rows.items;
	return IBID_OK;
}

static enum ibid_code start_list(struct lite_conn *conn, const struct exception_filter *filter,
                                 struct lite_run *run, struct ibid_err *err)
{
	bool open = filter->state == EXCEPTION_OPEN;
	enum ibid_code code = lite_start(conn, open ? LITE_exception_list_open : LITE_exception_list,
	                                 run, err);
	lite_bind_text(run, filter->tenant);
	lite_bind_text(
	    run, filter->queue < 0 ? NULL : exception_queue_name((enum exception_queue)filter->queue));
	lite_bind_text(
	    run, filter->state < 0 ? NULL : exception_state_name((enum exception_state)filter->state));
	lite_bind_text(run, filter->owner);
	lite_bind_text(run, filter->subject_type);
	lite_bind_text(run, filter->subject_id);
	lite_bind_uuid(run, filter->after);
	lite_bind_int(run, (int64_t)filter->limit);
	lite_bind_text(run, filter->assignee);
	return code;
}

enum ibid_code lite_list_exceptions(struct store *base, struct arena *arena,
                                    const struct exception_filter *filter,
                                    struct exception_row **ret, size_t *ret_count,
                                    struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct exception_row)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = start_list(conn, filter, &run, err);
	code = read_rows(&rows, &run, code, err);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
