/* SPDX-License-Identifier: Apache-2.0 */
/* hold.c -- what people decide about events that are held. */
#include "store/outbox.h"

#include "store/sqlite/lite.h"

enum ibid_code lite_decide_hold(struct tx *base, const struct hold_decision *decision,
                                struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	struct lite_run run;
	enum ibid_code code = lite_tx_start(tx, LITE_delivery_hold_decide, &run, err);
	lite_bind_text(&run, decision->tenant);
	lite_bind_uuid(&run, &decision->event_id);
	lite_bind_text(&run, decision->destination);
	lite_bind_text(&run, hold_state_name(decision->from));
	lite_bind_text(&run, hold_state_name(decision->to));
	return lite_finish_one(tx, &run, code, "the event is not held so any more", err);
}

enum ibid_code lite_withdraw_event(struct tx *base, const struct withdrawal *withdrawal,
                                   struct ibid_err *err)
{
	struct lite_tx *tx = lite_tx_of(base);
	struct lite_run run;
	enum ibid_code code = lite_tx_start(tx, LITE_delivery_hold_withdraw, &run, err);
	lite_bind_text(&run, withdrawal->tenant);
	lite_bind_uuid(&run, &withdrawal->event_id);
	lite_bind_int(&run, withdrawal->at_us);
	return lite_tx_failed(tx, lite_conclude(&run, code, err), err);
}

static enum ibid_code read_hold(struct lite_run *run, struct arena *arena, struct hold_row *ret,
                                struct ibid_err *err)
{
	ret->destination = lite_read_text(run, arena);
	ret->tenant = lite_read_text(run, arena);
	ret->event_id = lite_read_uuid(run);
	ret->aggregate_type = lite_read_text(run, arena);
	ret->aggregate_id = lite_read_text(run, arena);
	ret->version = lite_read_int(run);
	const char *state = lite_read_text(run, arena);
	ret->attempts = lite_read_small(run);
	const char *failure = lite_read_text(run, arena);
	ret->reason = lite_read_text(run, arena);
	ret->why = lite_read_text(run, arena);
	ret->next_us = lite_read_int(run);
	ret->since_us = lite_read_int(run);
	ret->passed = lite_read_small(run) != 0;
	ret->held = true;
	if (arena->failed)
		return err_set(err, IBID_NOMEM, "out of memory");
	if (!hold_state_read(state, &ret->state) ||
	    (failure && !failure_class_read(failure, &ret->failure)))
		return err_set(err, IBID_SCHEMA, "an event is held as %s, %s; upgrade ibid", state,
		               failure ? failure : "no failure");
	ret->was = ret->state;
	return IBID_OK;
}

static enum ibid_code list(struct lite_conn *conn, const char *tenant, const struct uuid *event_id,
                           struct lite_rows *rows, struct ibid_err *err)
{
	struct lite_run run;
	enum ibid_code code = lite_start(conn, LITE_delivery_hold_of_event, &run, err);
	lite_bind_text(&run, tenant);
	lite_bind_uuid(&run, event_id);
	while (lite_row(&run, &code, err)) {
		struct hold_row *row = lite_rows_add(rows);
		code = row ? read_hold(&run, rows->arena, row, err)
		           : err_set(err, IBID_NOMEM, "out of memory");
	}
	lite_end(&run);
	return code;
}

enum ibid_code lite_list_holds(struct store *base, struct arena *arena, const char *tenant,
                               const struct uuid *event_id, struct hold_row **ret,
                               size_t *ret_count, struct ibid_err *err)
{
	struct lite_store *store = lite_of(base);
	struct lite_conn *conn;
	struct lite_rows rows = {.arena = arena, .size = sizeof(struct hold_row)};
	enum ibid_code code = lite_reader_take(store, &conn, err);
	if (code)
		return code;
	code = list(conn, tenant, event_id, &rows, err);
	lite_reader_give(store, conn);
	if (!code) {
		*ret = rows.items;
		*ret_count = rows.count;
	}
	return code;
}
