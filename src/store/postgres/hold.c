/* SPDX-License-Identifier: Apache-2.0 */
/* hold.c -- what people decide about events that are held.
 *
 * Rows are locked in one order everywhere: the hold, by destination, before the exception, before
 * its approval. */
#include "store/outbox.h"
#include "store/postgres/postgres.h"

#include <assert.h>

enum ibid_code pg_decide_hold(struct tx *base, const struct hold_decision *decision,
                              struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	const char *values[] = {
	    decision->tenant,
	    pg_uuid(&tx->arena, &decision->event_id),
	    decision->destination,
	    hold_state_name(decision->from),
	    hold_state_name(decision->to),
	};
	return pg_tx_put(tx, STATEMENT_HOLD_DECIDE, values, err);
}

enum ibid_code pg_withdraw_event(struct tx *base, const struct withdrawal *withdrawal,
                                 struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	const char *values[] = {withdrawal->tenant, pg_uuid(&tx->arena, &withdrawal->event_id),
	                        pg_time(&tx->arena, withdrawal->at_us)};
	return pg_tx_put(tx, STATEMENT_HOLD_WITHDRAW, values, err);
}

static void read_hold(struct arena *arena, const PGresult *result, int row, void *ret)
{
	struct hold_row *hold = ret;
	const char *failure = pg_cell(result, row, 8);
	*hold = (struct hold_row){
	    .destination = pg_cell_text(arena, result, row, 0),
	    .tenant = pg_cell_text(arena, result, row, 1),
	    .event_id = pg_cell_uuid(result, row, 2),
	    .aggregate_type = pg_cell_text(arena, result, row, 3),
	    .aggregate_id = pg_cell_text(arena, result, row, 4),
	    .version = pg_cell_int(result, row, 5),
	    .attempts = (int)pg_cell_int(result, row, 7),
	    .reason = pg_cell_text(arena, result, row, 9),
	    .why = pg_cell_text(arena, result, row, 10),
	    .next_us = pg_cell_int(result, row, 11),
	    .since_us = pg_cell_int(result, row, 12),
	    .passed = pg_cell_bool(result, row, 13),
	    .held = true,
	};
	bool known = hold_state_read(pg_cell(result, row, 6), &hold->state) &&
	             (!failure || failure_class_read(failure, &hold->failure));
	assert(known);
	(void)known;
	hold->was = hold->state;
}

enum ibid_code pg_list_holds(struct store *store, struct arena *arena, const char *tenant,
                             const struct uuid *event_id, struct hold_row **ret, size_t *ret_count,
                             struct ibid_err *err)
{
	static const struct pg_reader reader = {read_hold, sizeof(struct hold_row)};
	const char *values[] = {tenant, pg_uuid(arena, event_id)};
	return pg_list(store, arena, PG_CALL(HOLD_OF_EVENT, .values = values), &reader, (void **)ret,
	               ret_count, err);
}
