/* SPDX-License-Identifier: Apache-2.0 */
/* outbox_status.c -- how events stand toward their destinations: the view, and where to begin. */
#include "store/outbox.h"
#include "store/postgres/postgres.h"

#include <assert.h>

enum status_column {
	STATUS_TENANT,
	STATUS_EVENT,
	STATUS_KEY,
	STATUS_TYPE,
	STATUS_AGGREGATE_TYPE,
	STATUS_AGGREGATE_ID,
	STATUS_VERSION,
	STATUS_TOPIC,
	STATUS_DESTINATION,
	STATUS_STATE,
	STATUS_ATTEMPTS,
	STATUS_FAILURE,
	STATUS_REASON,
	STATUS_WHY,
	STATUS_WAITS_FOR,
	STATUS_NEXT,
	STATUS_SINCE,
	STATUS_RELAY,
	STATUS_PLACE,
	STATUS_PARTITION,
	STATUS_POSITION,
	STATUS_PUBLISHED,
	STATUS_CREATED,
	STATUS_COLUMNS
};

static int64_t number_or_none(const PGresult *result, int row, int column)
{
	return pg_cell(result, row, column) ? pg_cell_int(result, row, column) : -1;
}

static void read_status(struct arena *arena, const PGresult *result, int row, void *ret)
{
	struct outbox_row *status = ret;
	assert(PQnfields(result) == STATUS_COLUMNS);
	*status = (struct outbox_row){
	    .tenant = pg_cell_text(arena, result, row, STATUS_TENANT),
	    .event_id = pg_cell_uuid(result, row, STATUS_EVENT),
	    .event_key = pg_cell_text(arena, result, row, STATUS_KEY),
	    .type = pg_cell_text(arena, result, row, STATUS_TYPE),
	    .aggregate_type = pg_cell_text(arena, result, row, STATUS_AGGREGATE_TYPE),
	    .aggregate_id = pg_cell_text(arena, result, row, STATUS_AGGREGATE_ID),
	    .version = pg_cell_int(result, row, STATUS_VERSION),
	    .topic = pg_cell_text(arena, result, row, STATUS_TOPIC),
	    .destination = pg_cell_text(arena, result, row, STATUS_DESTINATION),
	    .attempts = (int)pg_cell_int(result, row, STATUS_ATTEMPTS),
	    .failure = pg_cell_text(arena, result, row, STATUS_FAILURE),
	    .reason = pg_cell_text(arena, result, row, STATUS_REASON),
	    .why = pg_cell_text(arena, result, row, STATUS_WHY),
	    .waits_for = pg_cell_int(result, row, STATUS_WAITS_FOR),
	    .next_us = pg_cell_int(result, row, STATUS_NEXT),
	    .since_us = pg_cell_int(result, row, STATUS_SINCE),
	    .relay = pg_cell_text(arena, result, row, STATUS_RELAY),
	    .place = pg_cell_text(arena, result, row, STATUS_PLACE),
	    .partition = (int32_t)number_or_none(result, row, STATUS_PARTITION),
	    .offset = number_or_none(result, row, STATUS_POSITION),
	    .published_us = pg_cell_int(result, row, STATUS_PUBLISHED),
	    .created_us = pg_cell_int(result, row, STATUS_CREATED),
	};
	bool known = outbox_state_read(pg_cell(result, row, STATUS_STATE), &status->state);
	assert(known); /* delivery_hold_state_check */
	(void)known;
}

/* Does only what is held have this state? */
static bool is_held_state(int state)
{
	return state >= OUTBOX_FAILED;
}

enum ibid_code pg_list_outbox(struct store *store, struct arena *arena,
                              const struct outbox_filter *filter, struct outbox_row **ret,
                              size_t *ret_count, struct ibid_err *err)
{
	static const struct pg_reader reader = {read_status, sizeof(struct outbox_row)};
	int64_t most = filter->limit > INT32_MAX ? INT32_MAX : (int64_t)filter->limit;
	const char *values[] = {
	    filter->tenant,
	    filter->destination,
	    filter->state < 0 ? NULL : outbox_state_name((enum outbox_state)filter->state),
	    filter->type,
	    filter->aggregate_type,
	    filter->aggregate_id,
	    filter->after ? pg_uuid(arena, filter->after) : NULL,
	    filter->after_destination,
	    pg_int(arena, most),
	};
	const char *of_event[] = {filter->tenant,
	                          filter->event_id ? pg_uuid(arena, filter->event_id) : NULL};
	struct pg_call call = filter->event_id ? PG_CALL(OUTBOX_GET, .values = of_event)
	                      : is_held_state(filter->state)
	                          ? PG_CALL(OUTBOX_LIST_HELD, .values = values)
	                          : PG_CALL(OUTBOX_LIST, .values = values);
	return pg_list(store, arena, call, &reader, (void **)ret, ret_count, err);
}
