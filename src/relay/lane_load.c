/* SPDX-License-Identifier: Apache-2.0 */
/* lane_load.c -- what is to go: of the hold, and what is new. */
#include "relay/envelope.h"
#include "relay/lane_parts.h"

#include <stdlib.h>
#include <string.h>

static enum ibid_code look_at_hold(struct relay_lane *lane, struct ibid_err *err)
{
	bool old = lane->held.count && lane_steady(lane) - lane->held_us >= LANE_LOOK_US;
	if (!lane->held_stale && !old)
		return IBID_OK;
	enum ibid_code code = held_list_read(&lane->held, lane->relay->options.store, &lane->lease,
	                                     err);
	lane->held_stale = code;
	lane->held_us = lane_steady(lane);
	return code;
}

static bool same_aggregate(const struct hold_row *one, const struct hold_row *two)
{
	return strcmp(one->tenant, two->tenant) == 0 &&
	       strcmp(one->aggregate_type, two->aggregate_type) == 0 &&
	       strcmp(one->aggregate_id, two->aggregate_id) == 0;
}

static bool has_paused_type(const struct relay_lane *lane, const struct event_row *event)
{
	return lane->paused.count && paused_has_type(&lane->paused, event->tenant, event->type);
}

/* May the first that is held of an aggregate go? */
static bool may_go(const struct relay_lane *lane, const struct hold_row *hold)
{
	switch (hold->state) {
	case HOLD_RELEASED:
	case HOLD_WAITS: return true;
	case HOLD_FAILED: return lane->eager || hold->next_us <= env_wall_us(lane->relay->options.env);
	default: return false; /* a person decides */
	}
}

static void add_held(struct relay_lane *lane, const struct held_event *held)
{
	lane->sendings[lane->count++] = (struct sending){
	    .event = &held->event,
	    .hold = &held->hold,
	    .aggregate = held_aggregate(held),
	};
}

/* It is not looked at again: what a person decided stays as evidence. */
static void pass_over(struct relay_lane *lane, const struct held_event *held)
{
	struct hold_row hold = held->hold;
	hold.passed = true;
	lane->holds[lane->hold_count++] = hold;
	lane->owes = true;
}

/* May it follow the one before it at once? */
static bool may_follow(const struct hold_row *hold)
{
	return hold->state != HOLD_PARKED && hold->state != HOLD_CANCELLED;
}

/* Of each aggregate whose first may go: that and those right behind it. */
static void add_due(struct relay_lane *lane)
{
	const struct hold_row *before = NULL;
	bool going = false;
	for (size_t i = 0; i < lane->held.count; i++) {
		const struct held_event *held = &lane->held.events[i];
		if (held_is_over(held)) {
			pass_over(lane, held);
			continue;
		}
		bool first = !before || !same_aggregate(before, &held->hold);
		if (first)
			going = may_go(lane, &held->hold);
		else
			going = going && may_follow(&held->hold);
		going = going && !held_is_early(held) && !has_paused_type(lane, &held->event);
		if (going)
			add_held(lane, held);
		before = &held->hold;
	}
}

/* Does something stand before new events of this aggregate? */
static bool is_blocked(const struct relay_lane *lane, uint64_t aggregate)
{
	if (held_list_blocks(&lane->held, aggregate))
		return true;
	for (size_t i = 0; lane->waiting && i < lane->count; i++)
		if (lane->sendings[i].waits && lane->sendings[i].aggregate == aggregate)
			return true;
	return false;
}

/* Who came early waits for one that goes elsewhere: no longer. Where that came early itself, it
 * stands in the hold before them from now on. */
static void free_early(struct relay_lane *lane, const struct event_row *passed)
{
	for (size_t i = 0; i < lane->held.count; i++) {
		const struct held_event *held = &lane->held.events[i];
		if (!held_is_early(held) || held->after != passed->version ||
		    strcmp(held->event.tenant, passed->tenant) != 0 ||
		    strcmp(held->event.aggregate_type, passed->aggregate_type) != 0 ||
		    strcmp(held->event.aggregate_id, passed->aggregate_id) != 0)
			continue;
		struct hold_row hold = held->hold;
		hold.reason = NULL;
		lane->holds[lane->hold_count++] = hold;
		lane->owes = true;
	}
}

struct hold_row lane_hold_of(const struct relay_lane *lane, const struct sending *sending)
{
	const struct event_row *event = sending->event;
	if (sending->hold)
		return *sending->hold;
	return (struct hold_row){
	    .tenant = event->tenant,
	    .event_id = event->id,
	    .aggregate_type = event->aggregate_type,
	    .aggregate_id = event->aggregate_id,
	    .version = event->version,
	    .state = sending->elsewhere ? HOLD_ELSEWHERE : HOLD_WAITS,
	    .since_us = env_wall_us(lane->relay->options.env),
	};
}

/* One that was cancelled before it was read: the store knows what a person decided about it. */
void lane_note_read(struct relay_lane *lane, const struct outbox_event *event)
{
	struct hold_row hold = lane_hold_of(lane, &(struct sending){.event = &event->event});
	hold.reason = event->early ? HOLD_EARLY : NULL;
	lane->holds[lane->hold_count++] = hold;
	lane->owes = true;
}

/* One that goes elsewhere is passed over. But where it came early, those behind it did, too, and do
 * not know it, since it was read: it stands in their way until the one before it has come. */
static void add_new(struct relay_lane *lane, const struct outbox_event *event)
{
	const struct event_row *row = &event->event;
	bool elsewhere = !envelope_is_for(row, lane->lease.destination);
	if (elsewhere)
		free_early(lane, row);
	if (elsewhere && !event->early)
		return;
	const struct held_event *held = held_list_find(&lane->held, row);
	if (held) {
		if (held_is_not_read(held))
			lane_note_read(lane, event);
		return;
	}
	uint64_t aggregate = envelope_aggregate(row->tenant, row->aggregate_type, row->aggregate_id);
	struct sending sending = {
	    .event = row,
	    .aggregate = aggregate,
	    .early = event->early,
	    .elsewhere = elsewhere,
	};
	sending.paused = has_paused_type(lane, row);
	sending.waits = event->early || sending.paused || is_blocked(lane, aggregate);
	lane->waiting += sending.waits;
	lane->sendings[lane->count++] = sending;
}

/* Fill the lane with what may go: of the hold, and what is new. */
enum ibid_code lane_load(struct relay_lane *lane, struct ibid_err *err)
{
	const struct relay_options *options = &lane->relay->options;
	struct lane_batch batch = {0};
	arena_release(&lane->arena);
	lane->count = lane->unsettled = lane->waiting = 0;
	lane->looked_us = lane_steady(lane);
	enum ibid_code code = options->store->ops->read_lane(options->store, &lane->arena, &lane->lease,
	                                                     lane->cursor, options->batch,
	                                                     lane->doubtful, &batch, err);
	/* After reading: what was withdrawn before must be known now. */
	lane->held_stale |= batch.withdrawn;
	if (!code)
		code = look_at_hold(lane, err);
	if (code)
		return code;
	size_t room = batch.count + 2 * lane->held.count + 1;
	lane->sendings = arena_array(&lane->arena, room, sizeof *lane->sendings);
	lane->deliveries = arena_array(&lane->arena, room, sizeof *lane->deliveries);
	lane->holds = arena_array(&lane->arena, room, sizeof *lane->holds);
	lane->exceptions = arena_array(&lane->arena, room, sizeof *lane->exceptions);
	lane->parked = arena_array(&lane->arena, room, sizeof *lane->parked);
	free(lane->next_cursor);
	lane->next_cursor = strdup(batch.cursor);
	if (lane->arena.failed || !lane->next_cursor)
		return err_set(err, IBID_NOMEM, "out of memory");
	add_due(lane);
	lane->eager = false;
	for (size_t i = 0; i < batch.count; i++)
		add_new(lane, &batch.events[i]);
	lane->unsettled = lane->count;
	lane->more = batch.more;
	lane->doubtful = lane->doubtful && batch.more;
	return IBID_OK;
}
