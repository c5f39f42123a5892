/* SPDX-License-Identifier: Apache-2.0 */
/* suite_hold.c -- what people decide about events that are held. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <stdio.h>
#include <string.h>

/* `count` events of one command and aggregate, for those destinations. */
void send_many(struct bed *bed, unsigned n, size_t count, const char *aggregate_id,
               const char *headers)
{
	struct event_row *events = arena_array(&bed->arena, count, sizeof *events);
	struct outcome outcome;
	char key[32];
	assert_non_null(events);
	for (size_t i = 0; i < count; i++) {
		events[i] = event_of(n, (int)i + 1, 0);
		events[i].aggregate_id = aggregate_id;
		events[i].topic = "payments";
		events[i].partition_key = "acme";
		events[i].headers = headers;
	}
	snprintf(key, sizeof key, "send-%u", n);
	check(bed, put_events(bed, key, n, events, count, &outcome));
}

static void send_to(struct bed *bed, unsigned n, const char *aggregate_id, const char *headers)
{
	send_many(bed, n, 1, aggregate_id, headers);
}

const char to_both[] = "{\"deliver_to\":\"hook,kafka\",\"event_version\":\"1\"}";

static enum ibid_code commit_action(struct bed *bed, struct tx **tx, enum ibid_code code)
{
	struct outcome outcome;
	if (!code)
		code = bed->ops->commit(tx, &bed->arena, &outcome, &bed->err);
	bed->ops->rollback(tx);
	return code;
}

enum ibid_code decide_hold(struct bed *bed, const char *destination, const struct event_row *event,
                           enum hold_state from, enum hold_state to)
{
	const struct hold_decision decision = {.tenant = event->tenant,
	                                       .destination = destination,
	                                       .event_id = event->id,
	                                       .from = from,
	                                       .to = to};
	struct tx *tx = begin_action(bed);
	return commit_action(bed, &tx, store_decide_hold(tx, &decision, &bed->err));
}

static void withdraw_event(struct bed *bed, const struct event_row *event)
{
	const struct withdrawal withdrawal = {event->tenant, event->id, now_us};
	struct tx *tx = begin_action(bed);
	check(bed, commit_action(bed, &tx, store_withdraw_event(tx, &withdrawal, &bed->err)));
}

/* How it is held at a destination; NULL: it is not. */
static const struct hold_row *held_at(struct bed *bed, const char *destination,
                                      const struct event_row *event)
{
	struct hold_row *rows = NULL;
	size_t found = 0;
	check(bed, store_list_holds(bed->store, &bed->arena, event->tenant, &event->id, &rows, &found,
	                            &bed->err));
	for (size_t i = 0; i < found; i++)
		if (strcmp(rows[i].destination, destination) == 0)
			return &rows[i];
	return NULL;
}

static void put_hold(struct bed *bed, const struct lane_lease *lane, struct hold_row hold)
{
	check(bed, settle(bed, lane, (struct lane_settlement){.holds = &hold, .hold_count = 1}));
}

static struct exception_row item_of(struct bed *bed, unsigned n, const char *destination,
                                    const struct event_row *event)
{
	char id[UUID_TEXT_SIZE];
	struct exception_row item = exception_of(n, "");
	uuid_write(event->id, id);
	item.subject_type = "delivery";
	item.subject_id = arena_printf(&bed->arena, "%s/%s", destination, id);
	return item;
}

void decided_hold_is_not_overwritten_by_a_settlement(void **state) /* C04 J02 */
{
	static const struct {
		enum hold_state read, from, to, meant;
	} cases[] = {
	    {HOLD_PARKED, HOLD_PARKED, HOLD_SKIPPED, HOLD_FAILED},
	    {HOLD_PARKED, HOLD_PARKED, HOLD_SKIPPED, HOLD_PARKED},
	    {HOLD_PARKED, HOLD_PARKED, HOLD_RELEASED, HOLD_WAITS},
	    {HOLD_FAILED, HOLD_FAILED, HOLD_RELEASED, HOLD_FAILED},
	    {HOLD_FAILED, HOLD_FAILED, HOLD_RELEASED, HOLD_PARKED},
	};
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	struct exception_row *items;
	lease_all(bed, "kafka", "a", lanes);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		char name[16];
		snprintf(name, sizeof name, "p-%u", i);
		send_to(bed, i + 1, name, to_both);
		const struct lane_lease *lane = lane_of(bed, lanes, name);
		struct lane_batch batch = read_lane(bed, lane, "", 9);
		const struct event_row *event = &batch.events[batch.count - 1].event;
		assert_string_equal(event->aggregate_id, name);
		put_hold(bed, lane, hold_of(event, cases[i].read));
		struct hold_row meant = *held_at(bed, "kafka", event); /* as the relay reads it */
		check(bed, decide_hold(bed, "kafka", event, cases[i].from, cases[i].to));
		meant.state = cases[i].meant;
		meant.attempts = 7;
		struct exception_row item = item_of(bed, i + 1, "kafka", event);
		check(bed, settle(bed, lane,
		                  (struct lane_settlement){.holds = &meant,
		                                           .hold_count = 1,
		                                           .exceptions = &item,
		                                           .exception_count = 1}));
		const struct hold_row *now = held_at(bed, "kafka", event);
		assert_int_equal(now->state, cases[i].to);
		assert_int_equal(now->passed, cases[i].to == HOLD_SKIPPED);
		assert_int_equal(now->attempts, cases[i].to == HOLD_RELEASED ? 0 : 2);
	}
	assert_int_equal(list_exceptions(bed, &all, &items), 0);
}

void released_hold_is_written_by_who_read_it_so(void **state) /* C04 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	struct exception_row *items;
	struct held_event *held;
	lease_all(bed, "kafka", "a", lanes);
	send_to(bed, 1, "p-1", to_both);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	const struct event_row *event = &batch.events[0].event;
	put_hold(bed, lane, hold_of(event, HOLD_PARKED));
	check(bed, decide_hold(bed, "kafka", event, HOLD_PARKED, HOLD_RELEASED));
	assert_int_equal(list_held(bed, lane, &held), 1);
	assert_int_equal(held[0].hold.state, HOLD_RELEASED);
	assert_true(held[0].hold.held && held[0].hold.was == HOLD_RELEASED);
	struct hold_row hold = held[0].hold;
	struct exception_row item = item_of(bed, 1, "kafka", event);
	hold.state = HOLD_PARKED;
	for (int i = 0; i < 2; i++) /* once more: its commit was unknown */
		check(bed, settle(bed, lane,
		                  (struct lane_settlement){.holds = &hold,
		                                           .hold_count = 1,
		                                           .exceptions = &item,
		                                           .exception_count = 1}));
	assert_int_equal(held_at(bed, "kafka", event)->state, HOLD_PARKED);
	assert_int_equal(list_exceptions(bed, &all, &items), 1);
}

void hold_is_decided_once_and_only_as_it_was_looked_at(void **state) /* J02 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	lease_all(bed, "kafka", "a", lanes);
	send_to(bed, 1, "p-1", to_both);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct event_row event = batch.events[0].event;
	assert_int_equal(decide_hold(bed, "kafka", &event, HOLD_PARKED, HOLD_SKIPPED), IBID_RETRY);
	put_hold(bed, lane, hold_of(&event, HOLD_PARKED));
	assert_int_equal(decide_hold(bed, "kafka", &event, HOLD_FAILED, HOLD_SKIPPED), IBID_RETRY);
	assert_int_equal(decide_hold(bed, "hook", &event, HOLD_PARKED, HOLD_SKIPPED), IBID_RETRY);
	event.tenant = "other";
	assert_int_equal(decide_hold(bed, "kafka", &event, HOLD_PARKED, HOLD_SKIPPED), IBID_RETRY);
	event.tenant = "acme";
	check(bed, decide_hold(bed, "kafka", &event, HOLD_PARKED, HOLD_SKIPPED));
	assert_int_equal(decide_hold(bed, "kafka", &event, HOLD_PARKED, HOLD_SKIPPED), IBID_RETRY);
	assert_int_equal(held_at(bed, "kafka", &event)->state, HOLD_SKIPPED);
}

void skipped_event_is_passed_for_good(void **state) /* C04 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], others[OUTBOX_LANES];
	struct held_event *held;
	struct delivery_row *deliveries;
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "hook", "a", others);
	for (unsigned n = 1; n <= 2; n++)
		send_to(bed, n, "p-1", to_both);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	const struct event_row *event = &batch.events[0].event;
	put_hold(bed, lane, hold_of(event, HOLD_PARKED));
	put_hold(bed, lane, hold_of(&batch.events[1].event, HOLD_WAITS));
	check(bed, decide_hold(bed, "kafka", event, HOLD_PARKED, HOLD_SKIPPED));
	assert_int_equal(list_held(bed, lane, &held), 1);
	assert_int_equal(held[0].event.version, 2);
	assert_false(held[0].early); /* the one before it is passed */
	struct lane_batch again = read_doubtful(bed, lane, "");
	assert_int_equal(again.count, 1); /* nobody who takes the lane over sends it */
	assert_int_equal(again.events[0].event.version, 2);
	assert_false(again.withdrawn);
	assert_int_equal(read_doubtful(bed, &others[lane->lane], "").count, 2);

	/* It was on its way: there is evidence, and what a person said stays. */
	struct delivery_row arrived = delivery_of(event);
	arrived.was_held = true;
	check(bed,
	      settle(bed, lane, (struct lane_settlement){.deliveries = &arrived, .delivery_count = 1}));
	assert_int_equal(list_deliveries(bed, "acme", event->id, &deliveries), 1);
	assert_int_equal(held_at(bed, "kafka", event)->state, HOLD_SKIPPED);
}

void withdrawn_event_is_cancelled_wherever_it_did_not_arrive(void **state) /* C04 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], others[OUTBOX_LANES];
	struct held_event *held;
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "hook", "a", others);
	for (unsigned n = 1; n <= 4; n++)
		send_to(bed, n, "p-1", to_both);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	const struct lane_lease *other = &others[lane->lane];
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	const struct event_row *arrives = &batch.events[0].event, *parks = &batch.events[1].event;
	const struct event_row *skips = &batch.events[2].event, *next = &batch.events[3].event;
	assert_false(batch.withdrawn);
	struct delivery_row delivery = delivery_of(arrives);
	check(bed, settle(bed, other,
	                  (struct lane_settlement){.deliveries = &delivery, .delivery_count = 1}));
	put_hold(bed, lane, hold_of(arrives, HOLD_PARKED));
	put_hold(bed, lane, hold_of(parks, HOLD_PARKED));
	put_hold(bed, lane, hold_of(skips, HOLD_PARKED));
	check(bed, decide_hold(bed, "kafka", skips, HOLD_PARKED, HOLD_SKIPPED));
	withdraw_event(bed, arrives);
	withdraw_event(bed, parks);
	withdraw_event(bed, skips);
	withdraw_event(bed, parks); /* that it is so already is success */
	assert_null(held_at(bed, "hook", arrives));
	assert_int_equal(held_at(bed, "kafka", arrives)->state, HOLD_CANCELLED);
	assert_int_equal(held_at(bed, "kafka", parks)->state, HOLD_CANCELLED);
	assert_true(held_at(bed, "kafka", parks)->passed);
	assert_int_equal(held_at(bed, "kafka", skips)->state, HOLD_SKIPPED);
	assert_int_equal(held_at(bed, "hook", skips)->state, HOLD_CANCELLED);
	assert_null(held_at(bed, "kafka", next));
	assert_int_equal(list_held(bed, lane, &held), 0);
	assert_int_equal(read_doubtful(bed, lane, "").count, 1);
	assert_false(read_lane(bed, lane, "", 9).withdrawn);

	/* The other has not read it yet: it stands there until it has. */
	assert_int_equal(list_held(bed, other, &held), 2);
	assert_int_equal(held[0].hold.state, HOLD_CANCELLED);
	assert_string_equal(held[0].hold.reason, HOLD_NOT_READ);
	assert_false(held[0].hold.passed || held[0].arrived);
	batch = read_lane(bed, other, "", 9);
	assert_true(batch.withdrawn);
	assert_int_equal(batch.count, 4);
	put_hold(bed, other, hold_of(&batch.events[1].event, HOLD_WAITS));
	put_hold(bed, other, hold_of(&batch.events[2].event, HOLD_FAILED)); /* it was on its way */
	assert_int_equal(list_held(bed, other, &held), 0);
	assert_int_equal(held_at(bed, "hook", parks)->state, HOLD_CANCELLED);
	assert_int_equal(held_at(bed, "hook", skips)->state, HOLD_CANCELLED);
	assert_false(read_lane(bed, other, "", 9).withdrawn);
	assert_int_equal(read_doubtful(bed, other, "").count, 1);
}

void withdrawn_event_that_came_early_stands_until_it_may_be_passed(void **state) /* C04 I5 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], others[OUTBOX_LANES];
	struct held_event *held;
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "hook", "a", others);
	send_to(bed, 1, "p-1", to_both);
	send_to(bed, 2, "p-1", to_both);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	const struct lane_lease *other = &others[lane->lane];
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct hold_row early = hold_of(&batch.events[1].event, HOLD_WAITS);
	early.reason = HOLD_EARLY;
	put_hold(bed, lane, early); /* before it is withdrawn */
	withdraw_event(bed, &batch.events[1].event);
	put_hold(bed, other, early); /* and after */
	const struct lane_lease *const both[] = {lane, other};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(list_held(bed, both[i], &held), 1);
		assert_int_equal(held[0].hold.state, HOLD_CANCELLED);
		assert_string_equal(held[0].hold.reason, HOLD_EARLY);
		struct hold_row over = held[0].hold;
		over.passed = true;
		put_hold(bed, both[i], over);
		assert_int_equal(list_held(bed, both[i], &held), 0);
	}
}

void withdrawn_event_that_was_on_its_way_says_so(void **state) /* C04 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct held_event *held;
	lease_all(bed, "kafka", "a", lanes);
	send_to(bed, 1, "p-1", to_both);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	withdraw_event(bed, &batch.events[0].event);
	struct delivery_row arrived = delivery_of(&batch.events[0].event);
	check(bed,
	      settle(bed, lane, (struct lane_settlement){.deliveries = &arrived, .delivery_count = 1}));
	assert_int_equal(list_held(bed, lane, &held), 1);
	assert_true(held[0].arrived);
}

void event_is_found_by_its_id_in_its_tenant(void **state) /* K03 */
{
	struct bed *bed = bed_of(state);
	struct event_row event, *rows;
	size_t found = 0;
	send_to(bed, 1, "p-1", to_both);
	check(bed,
	      store_list_events(bed->store, &bed->arena, "acme", NULL, 9, &rows, &found, &bed->err));
	assert_int_equal(found, 1);
	check(bed, store_get_event(bed->store, &bed->arena, "acme", &rows[0].id, &event, &bed->err));
	assert_event(bed, &event, &rows[0]);
	assert_int_equal(
	    store_get_event(bed->store, &bed->arena, "other", &rows[0].id, &event, &bed->err),
	    IBID_NOT_FOUND);
	struct uuid none = make_id(9);
	assert_int_equal(store_get_event(bed->store, &bed->arena, "acme", &none, &event, &bed->err),
	                 IBID_NOT_FOUND);
}
