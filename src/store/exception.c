/* SPDX-License-Identifier: Apache-2.0 */
/* exception.c -- human work: one open item per queue and subject. */
#include "store/exception.h"

#include "store/run.h"

WORDS_DEFINE(exception_queue, exception_queue, EXCEPTION_QUEUES);
WORDS_DEFINE(exception_severity, exception_severity, EXCEPTION_SEVERITIES);
WORDS_DEFINE(exception_state, exception_state, EXCEPTION_STATES);

#define ITEM(kind, column, member, ...)                                                            \
	ROW_COLUMN(kind, struct exception_row, column, member, __VA_ARGS__)
static const struct row_column columns[] = {
    ITEM(UUID, id, id),
    ITEM(TEXT, tenant, tenant, .inside = true),
    ITEM(WORD, queue, queue, .words = &exception_queue_words),
    ITEM(WORD, state, state, .words = &exception_state_words),
    ITEM(WORD, severity, severity, .words = &exception_severity_words),
    ITEM(TEXT, subject_type, subject_type),
    ITEM(TEXT, subject_id, subject_id),
    ITEM(TEXT, business_key, business_key, .json = "key"),
    ITEM(TEXT, source, source),
    ITEM(TEXT, payload_ref, payload_ref),
    ITEM(TEXT, reason, reason),
    ITEM(TEXT, detail, detail),
    ITEM(TEXT, suggestion, suggestion),
    ITEM(TEXT, owner, owner),
    ITEM(BOOL, retryable, retryable),
    ITEM(NAMES, actions, actions),
    ITEM(TEXT, correlation_id, correlation_id),
    ITEM(TEXT, document_type, document_type),
    ITEM(TEXT, document_id, document_id),
    ITEM(TIME, opened_at, opened_us),
    ITEM(TIME_OR_NONE, due_at, due_us),
    ITEM(TIME_OR_NONE, resolved_at, resolved_us),
    ITEM(TEXT, resolution, resolution),
    ITEM(TEXT, resolved_by, resolved_by),
    ITEM(TEXT, note, note),
    ITEM(TEXT, trace_id, trace_id),
    ITEM(NAMES, needs_approval, needs_approval),
    ITEM(TEXT, assignee, assignee),
    ITEM(TEXT, service_answer, service_answer, .json = ""),
};
const struct row_shape exception_shape = ROW_SHAPE(struct exception_row, columns);

#define END(kind, column, member, ...)                                                             \
	ROW_COLUMN(kind, struct exception_end, column, member, __VA_ARGS__)
static const struct row_column end_columns[] = {
    END(TEXT, tenant, tenant),
    END(UUID_AT, id, id),
    END(UUID_AT, approval, approval),
    END(WORD, queue, queue, .words = &exception_queue_words),
    END(TEXT, subject_type, subject_type),
    END(TEXT, subject_id, subject_id),
    END(TIME, resolved_at, resolved_us),
    END(TEXT, resolution, resolution),
    END(TEXT, resolved_by, resolved_by),
    END(TEXT, note, note),
};
static const struct row_shape end_shape = ROW_SHAPE(struct exception_end, end_columns);

static const struct row_column assignment_columns[] = {
    ROW_COLUMN(TEXT, struct exception_assignment, tenant, tenant),
    ROW_COLUMN(UUID, struct exception_assignment, id, id),
    ROW_COLUMN(TEXT, struct exception_assignment, owner, owner),
    ROW_COLUMN(TEXT, struct exception_assignment, assignee, assignee),
};
static const struct row_shape assignment_shape = ROW_SHAPE(struct exception_assignment,
                                                           assignment_columns);

#define FILTER(kind, member, ...)                                                                  \
	ROW_COLUMN(kind, struct exception_filter, member, member, __VA_ARGS__)
static const struct row_column filter_columns[] = {
    FILTER(TEXT, tenant),
    FILTER(WORD, queue, .words = &exception_queue_words),
    FILTER(WORD, state, .words = &exception_state_words),
    FILTER(TEXT, owner),
    FILTER(TEXT, assignee),
    FILTER(TEXT, subject_type),
    FILTER(TEXT, subject_id),
    FILTER(UUID_AT, after),
    FILTER(SIZE, limit),
};
static const struct row_shape filter_shape = ROW_SHAPE(struct exception_filter, filter_columns);

enum ibid_code store_put_exception(struct tx *tx, const struct exception_row *row,
                                   struct ibid_err *err)
{
	return sql_put(tx, SQL_IN(exception_put, exception_shape, row), err);
}

enum ibid_code store_resolve_exception(struct tx *tx, const struct exception_end *end,
                                       struct ibid_err *err)
{
	enum ibid_code code;
	if (end->id) {
		code = sql_put(tx, SQL_IN(exception_end, end_shape, end), err);
		return code ? code : sql_put(tx, SQL_IN(approval_lapse, end_shape, end), err);
	}
	code = sql_put(tx, SQL_IN(approval_lapse_open, end_shape, end), err);
	return code ? code : sql_put(tx, SQL_IN(exception_resolve, end_shape, end), err);
}

enum ibid_code store_assign_exception(struct tx *tx, const struct exception_assignment *to,
                                      struct ibid_err *err)
{
	return sql_put(tx, SQL_IN(exception_assign, assignment_shape, to), err);
}

enum ibid_code store_get_exception(struct store *store, struct arena *arena, const char *tenant,
                                   const struct uuid *id, struct exception_row *ret,
                                   struct ibid_err *err)
{
	struct lookup of = {.tenant = tenant, .id = *id};
	return sql_get(store, SQL_IN(exception_get, lookup_shape, &of), arena, &exception_shape, ret,
	               "no such exception", err);
}

enum ibid_code store_list_exceptions(struct store *store, struct arena *arena,
                                     const struct exception_filter *filter,
                                     struct exception_row **ret, size_t *ret_count,
                                     struct ibid_err *err)
{
	struct sql_in in = filter->state == EXCEPTION_OPEN
	                       ? SQL_IN(exception_list_open, filter_shape, filter)
	                       : SQL_IN(exception_list, filter_shape, filter);
	return sql_list(store, in, arena, &exception_shape, ret, ret_count, err);
}
