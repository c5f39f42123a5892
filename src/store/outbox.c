/* SPDX-License-Identifier: Apache-2.0 */
/* outbox.c -- where an event is to go, how it stands, what it waits for; counting what is new. */
#include "store/outbox.h"

#include "store/run.h"

#include <string.h>
#include <strings.h>

WORDS_DEFINE(hold_state, hold_state, HOLD_STATES);

const char *event_header(const struct event_row *event, const char *name, size_t *ret_size)
{
	const char *at = event->headers;
	size_t size = strlen(name);
	while (at && (at = strchr(at, '"'))) {
		at++;
		if (strncmp(at, name, size) == 0 && strncmp(at + size, "\":\"", 3) == 0) {
			at += size + 3;
			*ret_size = strcspn(at, "\"");
			return at;
		}
		at = strchr(at, '"');
		at = at ? at + 1 : NULL;
	}
	return NULL;
}

bool event_is_for(const struct event_row *event, const char *destination)
{
	size_t left, size = strlen(destination);
	const char *at = event_header(event, "deliver_to", &left);
	const char *end = at ? at + left : NULL;
	while (at && at < end) {
		size_t name = strcspn(at, ",\"");
		if (name == size && memcmp(at, destination, size) == 0)
			return true;
		at += name + 1;
	}
	return false;
}

static const char *const outbox_state_texts[] = {OUTBOX_STATES(WORDS_TEXT)};
struct words outbox_state_words = {outbox_state_texts, OUTBOX_STATE_COUNT, {NULL}};

const char *outbox_state_name(enum outbox_state state)
{
	return words_text(&outbox_state_words, (int)state);
}

bool outbox_state_read(const char *name, enum outbox_state *ret)
{
	for (int i = 0; i < OUTBOX_STATE_COUNT; i++) {
		if (strcasecmp(name, outbox_state_texts[i]) == 0) {
			*ret = (enum outbox_state)i;
			return true;
		}
	}
	return false;
}

const char *outbox_place_text(struct arena *arena, const struct outbox_row *row)
{
	char id[UUID_TEXT_SIZE];
	uuid_write(row->event_id, id);
	return arena_printf(arena, "%s/%s", id, row->destination);
}

bool outbox_place_read(const char *text, struct uuid *ret, const char **ret_destination)
{
	char id[UUID_TEXT_SIZE];
	size_t size = strcspn(text, "/");
	if (size != sizeof id - 1)
		return false;
	memcpy(id, text, size);
	id[size] = 0;
	*ret_destination = text[size] ? text + size + 1 : NULL;
	return uuid_read(id, ret);
}

enum ibid_code outbox_count(struct store *store, size_t pieces, struct ibid_err *err)
{
	enum { PIECE = 2000 }; /* events of each lane: some milliseconds, of SQLite's one writer, too */
	enum ibid_code code = IBID_OK;
	bool more = true;
	for (size_t i = 0; !code && more && i < pieces; i++)
		code = store->ops->count_outbox(store, PIECE, &more, err);
	return code;
}

/* ---- Shapes --------------------------------------------------------------------------------- */

static const struct row_column lane_columns[] = {
    ROW_COLUMN(TEXT, struct lane_row, destination, destination),
    ROW_COLUMN(INT, struct lane_row, lane, lane),
    ROW_COLUMN(TEXT, struct lane_row, relay, relay),
    ROW_COLUMN(LONG, struct lane_row, token, token),
    ROW_COLUMN(TIME_OR_NONE, struct lane_row, lease_until, lease_until_us),
    ROW_COLUMN(TIME_OR_NONE, struct lane_row, moved_at, moved_us),
    ROW_COLUMN(LONG, struct lane_row, delivered, delivered),
};
const struct row_shape lane_shape = ROW_SHAPE(struct lane_row, lane_columns);

static const struct row_column delivery_columns[] = {
    ROW_COLUMN(TEXT, struct delivery_row, tenant, tenant, .json = ""),
    ROW_COLUMN(UUID, struct delivery_row, event_id, event_id, .json = ""),
    ROW_COLUMN(TEXT, struct delivery_row, destination, destination),
    ROW_COLUMN(LONG, struct delivery_row, token, token),
    ROW_COLUMN(TEXT, struct delivery_row, place, place),
    ROW_COLUMN(INT, struct delivery_row, partition, partition, .none = NONE_NEGATIVE),
    ROW_COLUMN(LONG, struct delivery_row, position, offset, .json = "offset",
               .none = NONE_NEGATIVE),
    ROW_COLUMN(TIME, struct delivery_row, at, at_us),
};
const struct row_shape delivery_shape = ROW_SHAPE(struct delivery_row, delivery_columns);

#define HOLD(kind, column, member, ...)                                                            \
	ROW_COLUMN(kind, struct hold_row, column, member, __VA_ARGS__)
static const struct row_column hold_columns[] = {
    HOLD(TEXT, destination, destination),
    HOLD(TEXT, tenant, tenant),
    HOLD(UUID, event_id, event_id),
    HOLD(TEXT, aggregatetype, aggregate_type),
    HOLD(TEXT, aggregateid, aggregate_id),
    HOLD(LONG, version, version),
    HOLD(WORD, state, state, .words = &hold_state_words),
    HOLD(INT, attempts, attempts),
    HOLD(WORD, failure, failure, .words = &failure_class_words),
    HOLD(TEXT, reason, reason),
    HOLD(TEXT, why, why),
    HOLD(TIME_OR_NONE, next_at, next_us),
    HOLD(TIME, since, since_us),
    HOLD(BOOL, passed, passed),
};
const struct row_shape hold_shape = ROW_SHAPE(struct hold_row, hold_columns);

#define STATUS(kind, column, member, ...)                                                          \
	ROW_COLUMN(kind, struct outbox_row, column, member, __VA_ARGS__)
static const struct row_column outbox_columns[] = {
    STATUS(TEXT, tenant, tenant, .inside = true),
    STATUS(UUID, event_id, event_id),
    STATUS(TEXT, event_key, event_key, .json = "key"),
    STATUS(TEXT, type, type),
    STATUS(TEXT, aggregate_type, aggregate_type),
    STATUS(TEXT, aggregate_id, aggregate_id),
    STATUS(LONG, version, version),
    STATUS(TEXT, topic, topic),
    STATUS(TEXT, destination, destination),
    STATUS(WORD, state, state, .words = &outbox_state_words),
    STATUS(INT, attempts, attempts),
    STATUS(TEXT, failure, failure),
    STATUS(TEXT, reason, reason),
    STATUS(TEXT, why, why),
    STATUS(LONG, waits_for, waits_for, .none = NONE_EMPTY),
    STATUS(TIME_OR_NONE, next_at, next_us),
    STATUS(TIME_OR_NONE, since, since_us),
    STATUS(TEXT, relay, relay),
    STATUS(TEXT, place, place),
    STATUS(INT, partition, partition, .none = NONE_NEGATIVE),
    STATUS(LONG, position, offset, .json = "offset", .none = NONE_NEGATIVE),
    STATUS(TIME_OR_NONE, published_at, published_us),
    STATUS(TIME, created_at, created_us),
};
const struct row_shape outbox_shape = ROW_SHAPE(struct outbox_row, outbox_columns);

#define FILTER(kind, member, ...)                                                                  \
	ROW_COLUMN(kind, struct outbox_filter, member, member, __VA_ARGS__)
static const struct row_column filter_columns[] = {
    FILTER(TEXT, tenant),
    FILTER(UUID_AT, event_id),
    FILTER(TEXT, destination),
    FILTER(TEXT, type),
    FILTER(TEXT, aggregate_type),
    FILTER(TEXT, aggregate_id),
    FILTER(WORD, state, .words = &outbox_state_words),
    FILTER(UUID_AT, after),
    FILTER(TEXT, after_destination),
    FILTER(SIZE, limit),
};
const struct row_shape outbox_filter_shape = ROW_SHAPE(struct outbox_filter, filter_columns);

static const struct row_column backlog_columns[] = {
    ROW_COLUMN(TEXT, struct backlog_row, destination, destination),
    ROW_COLUMN(LONG, struct backlog_row, written, written),
    ROW_COLUMN(LONG, struct backlog_row, delivered, delivered),
    ROW_COLUMN(LONG, struct backlog_row, backlog, backlog),
    ROW_COLUMN(LONG, struct backlog_row, held, held),
    ROW_COLUMN(LONG, struct backlog_row, failed, failed),
    ROW_COLUMN(LONG, struct backlog_row, parked, parked),
    ROW_COLUMN(LONG, struct backlog_row, oldest, oldest_us, .json = "oldestUs"),
    ROW_COLUMN(LONG, struct backlog_row, leased, leased, .json = "lanesLeased"),
    ROW_COLUMN(TIME_OR_NONE, struct backlog_row, moved_at, moved_us),
};
const struct row_shape backlog_shape = ROW_SHAPE(struct backlog_row, backlog_columns);

static const struct row_column decision_columns[] = {
    ROW_COLUMN(TEXT, struct hold_decision, tenant, tenant),
    ROW_COLUMN(TEXT, struct hold_decision, destination, destination),
    ROW_COLUMN(UUID, struct hold_decision, event_id, event_id),
    ROW_COLUMN(WORD, struct hold_decision, from, from, .words = &hold_state_words),
    ROW_COLUMN(WORD, struct hold_decision, to, to, .words = &hold_state_words),
};
static const struct row_shape decision_shape = ROW_SHAPE(struct hold_decision, decision_columns);

static const struct row_column withdrawal_columns[] = {
    ROW_COLUMN(TEXT, struct withdrawal, tenant, tenant),
    ROW_COLUMN(UUID, struct withdrawal, event_id, event_id),
    ROW_COLUMN(TIME, struct withdrawal, at, at_us),
};
static const struct row_shape withdrawal_shape = ROW_SHAPE(struct withdrawal, withdrawal_columns);

/* ---- Verbs ---------------------------------------------------------------------------------- */

enum ibid_code store_decide_hold(struct tx *tx, const struct hold_decision *decision,
                                 struct ibid_err *err)
{
	return sql_put(tx, SQL_IN(hold_decide, decision_shape, decision), err);
}

enum ibid_code store_withdraw_event(struct tx *tx, const struct withdrawal *withdrawal,
                                    struct ibid_err *err)
{
	return sql_put(tx, SQL_IN(hold_withdraw, withdrawal_shape, withdrawal), err);
}

enum ibid_code store_list_holds(struct store *store, struct arena *arena, const char *tenant,
                                const struct uuid *event_id, struct hold_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	struct lookup of = {.tenant = tenant, .id = *event_id};
	struct hold_row *rows = NULL;
	enum ibid_code code = sql_list(store, SQL_IN(hold_of_event, lookup_shape, &of), arena,
	                               &hold_shape, &rows, ret_count, err);
	for (size_t i = 0; !code && i < *ret_count; i++) {
		rows[i].held = true;
		rows[i].was = rows[i].state;
	}
	if (!code)
		*ret = rows;
	return code;
}

enum ibid_code store_list_lanes(struct store *store, struct arena *arena, struct lane_row **ret,
                                size_t *ret_count, struct ibid_err *err)
{
	struct lookup all = {.tenant = NULL};
	return sql_list(store, SQL_IN(lane_list, lookup_shape, &all), arena, &lane_shape, ret,
	                ret_count, err);
}

enum ibid_code store_list_deliveries(struct store *store, struct arena *arena, const char *tenant,
                                     const struct uuid *event_id, struct delivery_row **ret,
                                     size_t *ret_count, struct ibid_err *err)
{
	struct lookup of = {.tenant = tenant, .id = *event_id};
	return sql_list(store, SQL_IN(delivery_list, lookup_shape, &of), arena, &delivery_shape, ret,
	                ret_count, err);
}

/* Does only what is held have this state? */
static bool is_held_state(int state)
{
	return state >= OUTBOX_FAILED;
}

enum ibid_code store_list_outbox(struct store *store, struct arena *arena,
                                 const struct outbox_filter *filter, struct outbox_row **ret,
                                 size_t *ret_count, struct ibid_err *err)
{
	struct outbox_filter of_event = {
	    .tenant = filter->tenant,
	    .event_id = filter->event_id,
	    .state = -1,
	};
	struct sql_in in = SQL_IN(outbox_list_held, outbox_filter_shape, filter);
	if (filter->event_id)
		in = SQL_IN(outbox_get, outbox_filter_shape, &of_event);
	else if (!is_held_state(filter->state))
		return store->ops->list_outbox(store, arena, filter, ret, ret_count, err);
	return sql_list(store, in, arena, &outbox_shape, ret, ret_count, err);
}
