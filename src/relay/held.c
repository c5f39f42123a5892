/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/held.h"

#include "relay/envelope.h"

#include <string.h>

/* ---- One event ------------------------------------------------------------------------------ */

uint64_t held_aggregate(const struct held_event *held)
{
	const struct hold_row *hold = &held->hold;
	return envelope_aggregate(hold->tenant, hold->aggregate_type, hold->aggregate_id);
}

bool held_is_early(const struct held_event *held)
{
	return held->early && held->hold.reason && strcmp(held->hold.reason, HOLD_EARLY) == 0;
}

bool held_is_not_read(const struct held_event *held)
{
	return held->hold.state == HOLD_CANCELLED && held->hold.reason &&
	       strcmp(held->hold.reason, HOLD_NOT_READ) == 0;
}

bool held_is_over(const struct held_event *held)
{
	if (held->hold.state == HOLD_ELSEWHERE)
		return !held_is_early(held);
	return held->hold.state == HOLD_CANCELLED &&
	       (held->arrived || (!held_is_not_read(held) && !held_is_early(held)));
}

/* ---- The list ------------------------------------------------------------------------------- */

/* Ids end in an ordinal, and begin with a time: what is between them is random. */
static uint64_t number_of(const struct event_row *event)
{
	uint64_t halves[2];
	memcpy(halves, &event->id, sizeof halves);
	return (halves[0] ^ halves[1]) * 0x9e3779b97f4a7c15U >> 20;
}

static void put(uint32_t *slots, size_t mask, uint64_t number, size_t position)
{
	size_t at = (size_t)number & mask;
	while (slots[at])
		at = (at + 1) & mask;
	slots[at] = (uint32_t)position + 1;
}

static bool make_index(struct held_list *list)
{
	size_t size = 2;
	while (size < 2 * list->count)
		size *= 2;
	list->mask = size - 1;
	list->by_event = arena_array(&list->arena, size, sizeof *list->by_event);
	list->by_aggregate = arena_array(&list->arena, size, sizeof *list->by_aggregate);
	if (list->arena.failed)
		return false;
	for (size_t i = 0; i < list->count; i++) {
		put(list->by_event, list->mask, number_of(&list->events[i].event), i);
		if (!held_is_over(&list->events[i]) &&
		    !held_list_blocks(list, held_aggregate(&list->events[i])))
			put(list->by_aggregate, list->mask, held_aggregate(&list->events[i]), i);
	}
	return true;
}

enum ibid_code held_list_read(struct held_list *list, struct store *store,
                              const struct lane_lease *lease, struct ibid_err *err)
{
	held_list_release(list);
	enum ibid_code code = store->ops->list_held(store, &list->arena, lease, &list->events,
	                                            &list->count, err);
	if (!code && !make_index(list))
		code = err_set(err, IBID_NOMEM, "out of memory");
	if (code)
		held_list_release(list);
	return code;
}

void held_list_release(struct held_list *list)
{
	arena_release(&list->arena);
	*list = (struct held_list){0};
}

const struct held_event *held_list_find(const struct held_list *list, const struct event_row *event)
{
	if (!list->count)
		return NULL;
	for (size_t at = (size_t)number_of(event) & list->mask; list->by_event[at];
	     at = (at + 1) & list->mask) {
		const struct held_event *held = &list->events[list->by_event[at] - 1];
		if (memcmp(&held->event.id, &event->id, sizeof event->id) == 0 &&
		    strcmp(held->event.tenant, event->tenant) == 0)
			return held;
	}
	return NULL;
}

bool held_list_blocks(const struct held_list *list, uint64_t aggregate)
{
	if (!list->count)
		return false;
	for (size_t at = (size_t)aggregate & list->mask; list->by_aggregate[at];
	     at = (at + 1) & list->mask)
		if (held_aggregate(&list->events[list->by_aggregate[at] - 1]) == aggregate)
			return true;
	return false;
}
