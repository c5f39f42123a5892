/* SPDX-License-Identifier: Apache-2.0 */
/* event.c -- look at events. */
#include "store/event.h"

#include "store/run.h"

#define EVENT(kind, column, member, ...)                                                           \
	ROW_COLUMN(kind, struct event_row, column, member, __VA_ARGS__)
static const struct row_column columns[] = {
    EVENT(UUID, id, id, .json = "eventId"),
    EVENT(UUID, command_id, command_id),
    EVENT(TEXT, tenant, tenant, .inside = true),
    EVENT(TEXT, aggregatetype, aggregate_type, .json = "aggregateType"),
    EVENT(TEXT, aggregateid, aggregate_id, .json = "aggregateId"),
    EVENT(TEXT, type, type),
    EVENT(JSON, payload, payload, .inside = true),
    EVENT(LONG, version, version),
    EVENT(TEXT, key, key),
    EVENT(INT, ordinal, ordinal, .inside = true),
    EVENT(TEXT, correlation_id, correlation_id),
    EVENT(TEXT, causation_id, causation_id),
    EVENT(TEXT, traceparent, traceparent),
    EVENT(TEXT, tracestate, tracestate),
    EVENT(TIME, created_at, at_us),
    EVENT(TEXT, topic, topic),
    EVENT(TEXT, partition_key, partition_key),
    EVENT(JSON, headers, headers, .inside = true),
};
const struct row_shape event_shape = ROW_SHAPE(struct event_row, columns);

/* Events whose ids are in a range. */
struct range {
	const char *tenant;
	struct uuid first, last;
	size_t limit;
};
static const struct row_column range_columns[] = {
    ROW_COLUMN(TEXT, struct range, tenant, tenant),
    ROW_COLUMN(UUID, struct range, first, first),
    ROW_COLUMN(UUID, struct range, last, last),
    ROW_COLUMN(SIZE, struct range, limit, limit),
};
static const struct row_shape range_shape = ROW_SHAPE(struct range, range_columns);

enum ibid_code store_get_event(struct store *store, struct arena *arena, const char *tenant,
                               const struct uuid *id, struct event_row *ret, struct ibid_err *err)
{
	struct range of = {.tenant = tenant, .first = *id, .last = *id, .limit = 1};
	return sql_get(store, SQL_IN(event_range, range_shape, &of), arena, &event_shape, ret,
	               "no such event", err);
}

enum ibid_code store_list_events(struct store *store, struct arena *arena, const char *tenant,
                                 const struct uuid *command_id, size_t limit,
                                 struct event_row **ret, size_t *ret_count, struct ibid_err *err)
{
	struct range of = {.tenant = tenant, .limit = limit};
	struct lookup all = {.tenant = tenant, .limit = limit};
	struct sql_in in = SQL_IN(event_list, lookup_shape, &all);
	if (command_id) {
		of.first = uuid_nth(*command_id, 0);
		of.last = uuid_nth(*command_id, EVENT_ORDINAL_MAX);
		in = SQL_IN(event_range, range_shape, &of);
	}
	return sql_list(store, in, arena, &event_shape, ret, ret_count, err);
}
