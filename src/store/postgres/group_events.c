/* SPDX-License-Identifier: Apache-2.0 */
/* group_events.c -- the events of all members of a group, as the parameters of one statement. */
#include "store/postgres/array.h"

#include <stdlib.h>
#include <string.h>

/* One of them. */
struct listed {
	const struct event_row *row;
	size_t nth; /* of all */
	struct uuid id;
	const char *key;
	int behind; /* so many of its aggregate come after it */
	bool later; /* one of its aggregate that is sent, as it is, comes before it */
};

/* Events of one aggregate beside each other, in their order; aggregates in one order, in which
 * everybody moves their heads. */
static int by_aggregate(const void *a, const void *b)
{
	const struct listed *one = a, *two = b;
	int order = strcmp(one->row->tenant, two->row->tenant);
	if (!order)
		order = strcmp(one->row->aggregate_type, two->row->aggregate_type);
	if (!order)
		order = strcmp(one->row->aggregate_id, two->row->aggregate_id);
	return order ? order : (one->nth > two->nth) - (one->nth < two->nth);
}

static bool is_of_one(const struct listed *one, const struct listed *two)
{
	return strcmp(one->row->tenant, two->row->tenant) == 0 &&
	       strcmp(one->row->aggregate_type, two->row->aggregate_type) == 0 &&
	       strcmp(one->row->aggregate_id, two->row->aggregate_id) == 0;
}

/* An aggregate, and how its head is moved. */
struct head {
	const struct listed *first;
	int events;
	bool sent; /* one of them, at least */
};

/* The aggregates of sorted events, and the place of each event in its own; how many. */
static size_t find_heads(struct listed *events, size_t count, struct head *ret)
{
	size_t heads = 0;
	for (size_t from = 0, to; from < count; from = to) {
		struct head *head = &ret[heads++];
		*head = (struct head){.first = &events[from]};
		for (to = from; to < count && is_of_one(&events[from], &events[to]); to++) {
			events[to].later = head->sent && events[to].row->topic;
			head->sent |= events[to].row->topic != NULL;
		}
		head->events = (int)(to - from);
		for (size_t i = from; i < to; i++)
			events[i].behind = (int)(to - 1 - i);
	}
	return heads;
}

#define LIST(arrays, kind, from, count, add)                                                       \
	do {                                                                                           \
		pg_arrays_begin(arrays, kind, count);                                                      \
		for (size_t i = 0; i < (count); i++)                                                       \
			add(arrays, from);                                                                     \
	} while (0)

/* In the order of group_events' parameters. */
static void list_heads(struct pg_arrays *arrays, const struct head *heads, size_t count)
{
	LIST(arrays, PG_TEXT, heads[i].first->row->tenant, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, heads[i].first->row->aggregate_type, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, heads[i].first->row->aggregate_id, count, pg_arrays_text);
	LIST(arrays, PG_INT4, heads[i].events, count, pg_arrays_int4);
	LIST(arrays, PG_BOOL, heads[i].sent, count, pg_arrays_bool);
}

static void list_events(struct pg_arrays *arrays, const struct listed *events, size_t count)
{
	LIST(arrays, PG_TEXT, events[i].row->tenant, count, pg_arrays_text);
	LIST(arrays, PG_UUID, &events[i].id, count, pg_arrays_uuid);
	LIST(arrays, PG_TEXT, events[i].key, count, pg_arrays_text);
	LIST(arrays, PG_UUID, &events[i].row->command_id, count, pg_arrays_uuid);
	LIST(arrays, PG_INT4, events[i].row->ordinal, count, pg_arrays_int4);
	LIST(arrays, PG_TEXT, events[i].row->aggregate_type, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i].row->aggregate_id, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i].row->type, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i].row->payload, count, pg_arrays_text);
	LIST(arrays, PG_INT4, events[i].behind, count, pg_arrays_int4);
	LIST(arrays, PG_BOOL, events[i].later, count, pg_arrays_bool);
	LIST(arrays, PG_TEXT, events[i].row->correlation_id, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i].row->causation_id, count, pg_arrays_text);
	LIST(arrays, PG_TIME, events[i].row->at_us, count, pg_arrays_time);
	LIST(arrays, PG_TEXT, events[i].row->traceparent, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i].row->tracestate, count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i].row->topic, count, pg_arrays_text);
	LIST(arrays, PG_TEXT,
	     events[i].row->partition_key ? events[i].row->partition_key : events[i].row->aggregate_id,
	     count, pg_arrays_text);
	LIST(arrays, PG_TEXT, events[i].row->headers ? events[i].row->headers : "{}", count,
	     pg_arrays_text);
}

static struct listed *list_all(struct arena *arena, struct group_member *const *members,
                               size_t count, size_t total)
{
	struct listed *events = arena_array(arena, total, sizeof *events);
	size_t nth = 0;
	for (size_t i = 0; events && i < count; i++) {
		for (size_t k = 0; k < members[i]->event_count; k++, nth++) {
			const struct event_row *row = &members[i]->events[k];
			events[nth] = (struct listed){
			    .row = row,
			    .nth = nth,
			    .id = uuid_nth(row->command_id, (unsigned)row->ordinal),
			    .key = arena_printf(arena, "%s:%d", pg_uuid(arena, &row->command_id), row->ordinal),
			};
		}
	}
	return events;
}

bool pg_group_events(struct arena *arena, struct group_member *const *members, size_t count,
                     struct pg_call *ret)
{
	struct pg_arrays arrays = PG_ARRAYS_INIT;
	size_t total = 0;
	for (size_t i = 0; i < count; i++)
		total += members[i]->event_count;
	struct listed *events = list_all(arena, members, count, total);
	struct head *heads = arena_array(arena, total, sizeof *heads);
	if (!events || !heads)
		return false;
	qsort(events, total, sizeof *events, by_aggregate);
	list_heads(&arrays, heads, find_heads(events, total, heads));
	list_events(&arrays, events, total);
	return pg_arrays_end(&arrays, arena, ret) && !arena->failed;
}
