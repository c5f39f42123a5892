/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c -- what does not go on until somebody says so. */
#include "store/postgres/postgres.h"

#include <assert.h>
#include <string.h>

enum ibid_code pg_put_pause(struct tx *base, const struct pause_row *row, struct ibid_err *err)
{
	struct pg_tx *tx = pg_tx_of(base);
	const char *values[] = {
	    row->tenant,
	    pause_kind_name(row->kind),
	    row->name,
	    row->by_relay ? "relay" : "person",
	    row->by,
	    row->reason,
	    pg_time(&tx->arena, row->since_us),
	    row->item_tenant,
	};
	return pg_tx_put(tx, STATEMENT_PAUSE_PUT, values, err);
}

enum ibid_code pg_end_pause(struct tx *base, const struct pause_row *row, struct ibid_err *err)
{
	const char *values[] = {row->tenant, pause_kind_name(row->kind), row->name};
	return pg_tx_put(pg_tx_of(base), STATEMENT_PAUSE_END, values, err);
}

static void read_row(struct arena *arena, const PGresult *result, int row, void *ret)
{
	struct pause_row *pause = ret;
	*pause = (struct pause_row){
	    .tenant = pg_cell_text(arena, result, row, 0),
	    .name = pg_cell_text(arena, result, row, 2),
	    .by_relay = strcmp(pg_cell(result, row, 3), "relay") == 0,
	    .by = pg_cell_text(arena, result, row, 4),
	    .reason = pg_cell_text(arena, result, row, 5),
	    .since_us = pg_cell_int(result, row, 6),
	    .item_tenant = pg_cell_text(arena, result, row, 7),
	};
	bool known = pause_kind_read(pg_cell(result, row, 1), &pause->kind);
	assert(known);
	(void)known;
}

enum ibid_code pg_list_pauses(struct store *store, struct arena *arena, const char *tenant,
                              struct pause_row **ret, size_t *ret_count, struct ibid_err *err)
{
	static const struct pg_reader reader = {read_row, sizeof(struct pause_row)};
	const char *values[] = {tenant};
	return pg_list(store, arena, PG_CALL(PAUSE_LIST, .values = values), &reader, (void **)ret,
	               ret_count, err);
}
