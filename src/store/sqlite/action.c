/* SPDX-License-Identifier: Apache-2.0 */
/* action.c -- what people do: evidence of it, and what waits for a second person. */
#include "store/sqlite/lite.h"

enum ibid_code lite_begin_action(struct store *base, struct tx **ret, struct ibid_err *err)
{
	static const struct identity nobody = {.tenant = "", .operation = "", .scope = "", .key = ""};
	static const struct work_context none = {.tenant = ""};
	struct lite_tx *tx = NULL;
	enum ibid_code code = lite_tx_open(lite_of(base), &nobody, &none, &tx, err);
	if (!code)
		*ret = &tx->base;
	return code;
}

enum ibid_code lite_finish_one(struct lite_tx *tx, struct lite_run *run, enum ibid_code code,
                               const char *otherwise, struct ibid_err *err)
{
	if (!code)
		code = lite_finish(run, err);
	if (!code && sqlite3_changes(tx->conn->db) != 1)
		code = err_set(err, IBID_RETRY, "%s", otherwise);
	lite_end(run);
	return lite_tx_failed(tx, code, err);
}

/* ---- Actions -------------------------------------------------------------------------------- */

enum ibid_code lite_put_action(struct tx *base, const struct action_row *row, struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	struct lite_run run;
	enum ibid_code code = lite_tx_start(tx, LITE_action_put, &run, err);
	lite_bind_text(&run, row->tenant);
	lite_bind_uuid(&run, &row->id);
	lite_bind_int(&run, row->at_us);
	lite_bind_text(&run, row->actor);
	lite_bind_text(&run, row->token);
	lite_bind_text(&run, row->role);
	lite_bind_text(&run, row->action);
	lite_bind_text(&run, row->subject_type);
	lite_bind_text(&run, row->subject_id);
	lite_bind_text(&run, row->reason);
	lite_bind_text(&run, row->parameters);
	lite_bind_uuid_or_null(&run, &row->approval_id);
	return lite_finish_one(tx, &run, code, "the action is there already", err);
}

static void read_action(struct lite_run *run, struct arena *arena, void *row)
{
	struct action_row *ret = row;
	ret->tenant = lite_read_text(run, arena);
	ret->id = lite_read_uuid(run);
	ret->at_us = lite_read_int(run);
	ret->actor = lite_read_text(run, arena);
	ret->token = lite_read_text(run, arena);
	ret->role = lite_read_text(run, arena);
	ret->action = lite_read_text(run, arena);
	ret->subject_type = lite_read_text(run, arena);
	ret->subject_id = lite_read_text(run, arena);
	ret->reason = lite_read_text(run, arena);
	ret->parameters = lite_read_text(run, arena);
	ret->approval_id = lite_read_uuid(run);
}

/* ---- Approvals ------------------------------------------------------------------------------ */

enum ibid_code lite_put_approval(struct tx *base, const struct approval_row *row,
                                 struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	struct lite_run run;
	enum ibid_code code = lite_tx_start(tx, LITE_approval_put, &run, err);
	lite_bind_text(&run, row->tenant);
	lite_bind_uuid(&run, &row->id);
	lite_bind_text(&run, row->subject_type);
	lite_bind_text(&run, row->subject_id);
	lite_bind_text(&run, row->action);
	lite_bind_text(&run, row->parameters);
	lite_bind_text(&run, row->proposed_by);
	lite_bind_text(&run, row->proposed_token);
	lite_bind_text(&run, row->reason);
	lite_bind_int(&run, row->proposed_us);
	return lite_finish_one(tx, &run, code, "something is proposed already", err);
}

enum ibid_code lite_decide_approval(struct tx *base, const struct approval_end *end,
                                    struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	struct lite_run run;
	enum ibid_code code = lite_tx_start(tx, LITE_approval_decide, &run, err);
	lite_bind_text(&run, end->tenant);
	lite_bind_uuid(&run, &end->id);
	lite_bind_text(&run, approval_decision_name(end->decision));
	lite_bind_text(&run, end->decided_by);
	lite_bind_text(&run, end->decided_token);
	lite_bind_text(&run, end->decided_reason);
	lite_bind_int(&run, end->decided_us);
	lite_bind_text(&run, end->parameters);
	return lite_finish_one(tx, &run, code, "the proposal is decided already", err);
}

static void read_approval(struct lite_run *run, struct arena *arena, void *row)
{
	struct approval_row *ret = row;
	ret->tenant = lite_read_text(run, arena);
	ret->id = lite_read_uuid(run);
	ret->subject_type = lite_read_text(run, arena);
	ret->subject_id = lite_read_text(run, arena);
	ret->action = lite_read_text(run, arena);
	ret->parameters = lite_read_text(run, arena);
	ret->proposed_by = lite_read_text(run, arena);
	ret->proposed_token = lite_read_text(run, arena);
	ret->reason = lite_read_text(run, arena);
	ret->proposed_us = lite_read_int(run);
	(void)approval_decision_read(lite_read_text(run, arena), &ret->decision);
	ret->decided_by = lite_read_text(run, arena);
	ret->decided_token = lite_read_text(run, arena);
	ret->decided_reason = lite_read_text(run, arena);
	ret->decided_us = lite_read_int(run);
}

/* ---- Lists ---------------------------------------------------------------------------------- */

struct subject {
	const char *tenant, *type, *id;
};

static enum ibid_code list(struct store *base, enum lite_sql statement,
                           const struct subject *subject, size_t limit, lite_read_fn *read,
                           struct lite_rows *rows, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_run run;
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = lite_start(conn, statement, &run, err);
	lite_bind_text(&run, subject->tenant);
	lite_bind_text(&run, subject->type);
	lite_bind_text(&run, subject->id);
	lite_bind_int(&run, (int64_t)limit);
	code = lite_rows_read(rows, &run, read, code, err);
	lite_end(&run);
	lite_reader_give(store, conn);
	return code;
}

enum ibid_code lite_list_actions(struct store *base, struct arena *arena, const char *tenant,
                                 const char *subject_type, const char *subject_id, size_t limit,
                                 struct action_row **ret, size_t *ret_count, struct ibid_err *err)
{
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct action_row)};
	const struct subject subject = {tenant, subject_type, subject_id};
	enum ibid_code code = list(base, LITE_action_list, &subject, limit, read_action, &rows, err);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}

enum ibid_code lite_list_approvals(struct store *base, struct arena *arena, const char *tenant,
                                   const char *subject_type, const char *subject_id, size_t limit,
                                   struct approval_row **ret, size_t *ret_count,
                                   struct ibid_err *err)
{
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct approval_row)};
	const struct subject subject = {tenant, subject_type, subject_id};
	enum ibid_code code = list(base, LITE_approval_list, &subject, limit, read_approval, &rows,
	                           err);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
