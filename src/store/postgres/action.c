/* SPDX-License-Identifier: Apache-2.0 */
/* action.c -- what people do: evidence of it, and what waits for a second person.
 *
 * Rows are locked in one order everywhere, the exception before its approval: see exception_end.sql
 * and exception_resolve.sql; and what is held before both: see hold.c. */
#include "store/postgres/postgres.h"

#include <string.h>

enum ibid_code pg_begin_action(struct store *base, struct tx **ret, struct ibid_err *err)
{
	struct pg_store *store = pg_store_of(base);
	const struct uuid nobody = {{0}};
	struct arena arena = {0};
	const char *values[] = {pg_uuid(&arena, &nobody), pg_int(&arena, store->busy_ms)};
	struct pg_call calls[] = {PG_CALL(BEGIN), PG_CALL(ACT_BEGIN, .values = values)};
	struct pg_conn *conn = NULL;
	struct pg_tx *tx = NULL;
	enum ibid_code code = arena.failed ? err_set(err, IBID_NOMEM, "out of memory")
	                                   : pg_pool_trip(store, calls, 2, &conn, err);
	pg_release(calls, 2);
	arena_release(&arena);
	if (!code)
		code = pg_tx_new(store, conn, &nobody, &tx, err);
	if (!code)
		*ret = &tx->base;
	return code;
}

enum ibid_code pg_assign_exception(struct tx *base, const struct exception_assignment *to,
                                   struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	const char *values[] = {to->tenant, pg_uuid(&tx->arena, &to->id), to->owner, to->assignee};
	return pg_tx_put(tx, STATEMENT_EXCEPTION_ASSIGN, values, err);
}

enum ibid_code pg_put_action(struct tx *base, const struct action_row *row, struct ibid_err *err)
{
	static const struct uuid none;
	struct pg_tx *tx = pg_tx_of(base);
	bool alone = memcmp(&row->approval_id, &none, sizeof none) == 0;
	const char *values[] = {
	    row->tenant,
	    pg_uuid(&tx->arena, &row->id),
	    pg_time(&tx->arena, row->at_us),
	    row->actor,
	    row->token,
	    row->role,
	    row->action,
	    row->subject_type,
	    row->subject_id,
	    row->reason,
	    row->parameters,
	    alone ? NULL : pg_uuid(&tx->arena, &row->approval_id),
	};
	return pg_tx_put(tx, STATEMENT_ACTION_INSERT, values, err);
}

enum ibid_code pg_put_approval(struct tx *base, const struct approval_row *row,
                               struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	const char *values[] = {
	    row->tenant,       pg_uuid(&tx->arena, &row->id),
	    row->subject_type, row->subject_id,
	    row->action,       row->parameters,
	    row->proposed_by,  row->proposed_token,
	    row->reason,       pg_time(&tx->arena, row->proposed_us),
	};
	return pg_tx_put(tx, STATEMENT_APPROVAL_INSERT, values, err);
}

enum ibid_code pg_decide_approval(struct tx *base, const struct approval_end *end,
                                  struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	const char *values[] = {
	    end->tenant,
	    pg_uuid(&tx->arena, &end->id),
	    approval_decision_name(end->decision),
	    end->decided_by,
	    end->decided_token,
	    end->decided_reason,
	    pg_time(&tx->arena, end->decided_us),
	    end->parameters,
	};
	return pg_tx_put(tx, STATEMENT_APPROVAL_DECIDE, values, err);
}

static void read_action(struct arena *arena, const PGresult *result, int row, void *ret)
{
	*(struct action_row *)ret = (struct action_row){
	    .tenant = pg_cell_text(arena, result, row, 0),
	    .id = pg_cell_uuid(result, row, 1),
	    .at_us = pg_cell_int(result, row, 2),
	    .actor = pg_cell_text(arena, result, row, 3),
	    .token = pg_cell_text(arena, result, row, 4),
	    .role = pg_cell_text(arena, result, row, 5),
	    .action = pg_cell_text(arena, result, row, 6),
	    .subject_type = pg_cell_text(arena, result, row, 7),
	    .subject_id = pg_cell_text(arena, result, row, 8),
	    .reason = pg_cell_text(arena, result, row, 9),
	    .parameters = pg_cell_text(arena, result, row, 10),
	    .approval_id = pg_cell_uuid(result, row, 11),
	};
}

static void read_approval(struct arena *arena, const PGresult *result, int row, void *ret)
{
	struct approval_row *approval = ret;
	*approval = (struct approval_row){
	    .tenant = pg_cell_text(arena, result, row, 0),
	    .id = pg_cell_uuid(result, row, 1),
	    .subject_type = pg_cell_text(arena, result, row, 2),
	    .subject_id = pg_cell_text(arena, result, row, 3),
	    .action = pg_cell_text(arena, result, row, 4),
	    .parameters = pg_cell_text(arena, result, row, 5),
	    .proposed_by = pg_cell_text(arena, result, row, 6),
	    .proposed_token = pg_cell_text(arena, result, row, 7),
	    .reason = pg_cell_text(arena, result, row, 8),
	    .proposed_us = pg_cell_int(result, row, 9),
	    .decided_by = pg_cell_text(arena, result, row, 11),
	    .decided_token = pg_cell_text(arena, result, row, 12),
	    .decided_reason = pg_cell_text(arena, result, row, 13),
	    .decided_us = pg_cell_int(result, row, 14),
	};
	(void)approval_decision_read(pg_cell(result, row, 10), &approval->decision);
}

enum ibid_code pg_list_actions(struct store *store, struct arena *arena, const char *tenant,
                               const char *subject_type, const char *subject_id, size_t limit,
                               struct action_row **ret, size_t *ret_count, struct ibid_err *err)
{
	static const struct pg_reader reader = {read_action, sizeof(struct action_row)};
	const char *values[] = {tenant, subject_type, subject_id, pg_int(arena, (int64_t)limit)};
	return pg_list(store, arena, PG_CALL(ACTION_LIST, .values = values), &reader, (void **)ret,
	               ret_count, err);
}

enum ibid_code pg_list_approvals(struct store *store, struct arena *arena, const char *tenant,
                                 const char *subject_type, const char *subject_id, size_t limit,
                                 struct approval_row **ret, size_t *ret_count, struct ibid_err *err)
{
	static const struct pg_reader reader = {read_approval, sizeof(struct approval_row)};
	const char *values[] = {tenant, subject_type, subject_id, pg_int(arena, (int64_t)limit)};
	return pg_list(store, arena, PG_CALL(APPROVAL_LIST, .values = values), &reader, (void **)ret,
	               ret_count, err);
}
