/* SPDX-License-Identifier: Apache-2.0 */
/* suite_outbox.c -- lanes of the outbox: leased, read and settled. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One event that goes somewhere, of a command of its own. */
static void send_event(struct bed *bed, unsigned n, const char *aggregate_id)
{
	struct event_row event = event_of(n, 1, 0);
	struct outcome outcome;
	char key[32];
	event.aggregate_id = aggregate_id;
	event.topic = "payments";
	event.partition_key = "acme";
	event.headers = "{\"event_version\":\"1\"}";
	snprintf(key, sizeof key, "send-%u", n);
	check(bed, put_events(bed, key, n, &event, 1, &outcome));
}

struct leased {
	struct lane_lease *items;
	size_t count, share;
};

static struct leased lease(struct bed *bed, const char *destination, const char *relay,
                           int64_t lease_us)
{
	struct lane_wish wish = {.destination = destination, .relay = relay, .lease_us = lease_us};
	struct leased got = {.items = NULL};
	check(bed, bed->ops->lease_lanes(bed->store, &bed->arena, &wish, &got.items, &got.count,
	                                 &got.share, &bed->err));
	return got;
}

/* All lanes of a destination, by lane, for an hour. */
void lease_all(struct bed *bed, const char *destination, const char *relay,
               struct lane_lease ret[OUTBOX_LANES])
{
	struct leased got = lease(bed, destination, relay, hour_us);
	bool seen[OUTBOX_LANES] = {false};
	assert_int_equal(got.count, OUTBOX_LANES);
	for (size_t i = 0; i < got.count; i++) {
		int lane = got.items[i].lane;
		assert_in_range(lane, 0, OUTBOX_LANES - 1);
		assert_false(seen[lane]);
		seen[lane] = true;
		ret[lane] = got.items[i];
	}
}

/* All lanes, from a relay that holds them for a moment only. `ret` has no lease to speak of. */
static void take_all(struct bed *bed, const char *destination, struct lane_lease ret[OUTBOX_LANES])
{
	enum { TRIES = 5000, LEASE_US = 1000 };
	static unsigned names;
	for (int tries = 0; tries < TRIES; tries++) {
		char name[32];
		/* A new one each time: the one before is gone, or holds its lanes a moment longer. */
		snprintf(name, sizeof name, "taker-%u", ++names);
		struct leased got = lease(bed, destination, name, LEASE_US);
		if (got.count == OUTBOX_LANES) {
			for (size_t i = 0; i < got.count; i++)
				ret[got.items[i].lane] = got.items[i];
			return;
		}
		env_sleep_us(env_system(), INT64_C(2) * LEASE_US);
	}
	fail_msg("the lanes of %s did not come free", destination);
}

enum ibid_code settle(struct bed *bed, const struct lane_lease *lane,
                      struct lane_settlement settlement)
{
	settlement.lease = lane;
	return bed->ops->settle_lane(bed->store, &settlement, &bed->err);
}

struct lane_batch read_lane(struct bed *bed, const struct lane_lease *lane, const char *cursor,
                            size_t limit)
{
	struct lane_batch batch;
	check(bed, bed->ops->read_lane(bed->store, &bed->arena, lane, cursor, limit, false, &batch,
	                               &bed->err));
	assert_true(batch.count <= limit);
	assert_non_null(batch.cursor);
	return batch;
}

struct lane_batch read_doubtful(struct bed *bed, const struct lane_lease *lane, const char *cursor)
{
	struct lane_batch batch;
	check(bed,
	      bed->ops->read_lane(bed->store, &bed->arena, lane, cursor, 100, true, &batch, &bed->err));
	return batch;
}

/* The lane that an aggregate's events are in. */
const struct lane_lease *lane_of(struct bed *bed, const struct lane_lease *lanes,
                                 const char *aggregate_id)
{
	for (int i = 0; i < OUTBOX_LANES; i++) {
		struct lane_batch batch = read_lane(bed, &lanes[i], "", 100);
		for (size_t k = 0; k < batch.count; k++)
			if (strcmp(batch.events[k].event.aggregate_id, aggregate_id) == 0)
				return &lanes[i];
	}
	fail_msg("no lane has events of %s", aggregate_id);
	return NULL;
}

static size_t list_lanes(struct bed *bed, struct lane_row **ret)
{
	size_t found = 0;
	check(bed, store_list_lanes(bed->store, &bed->arena, ret, &found, &bed->err));
	return found;
}

size_t list_held(struct bed *bed, const struct lane_lease *lane, struct held_event **ret)
{
	size_t found = 0;
	check(bed, bed->ops->list_held(bed->store, &bed->arena, lane, ret, &found, &bed->err));
	return found;
}

size_t list_deliveries(struct bed *bed, const char *tenant, struct uuid event_id,
                       struct delivery_row **ret)
{
	size_t found = 0;
	check(bed, store_list_deliveries(bed->store, &bed->arena, tenant, &event_id, ret, &found,
	                                 &bed->err));
	return found;
}

struct delivery_row delivery_of(const struct event_row *event)
{
	return (struct delivery_row){
	    .tenant = event->tenant,
	    .event_id = event->id,
	    .place = "payments",
	    .partition = 3,
	    .offset = INT64_C(5000000000),
	    .at_us = now_us,
	};
}

struct hold_row hold_of(const struct event_row *event, enum hold_state state)
{
	struct hold_row hold = {
	    .tenant = event->tenant,
	    .event_id = event->id,
	    .aggregate_type = event->aggregate_type,
	    .aggregate_id = event->aggregate_id,
	    .version = event->version,
	    .state = state,
	    .since_us = now_us,
	};
	if (state != HOLD_WAITS) {
		hold.attempts = 2;
		hold.failure = FAILURE_CAPACITY;
		hold.reason = "HTTP_503";
		hold.why = "it said 'später'";
		hold.next_us = now_us + 7;
	}
	return hold;
}

void assert_event(struct bed *bed, const struct event_row *got, const struct event_row *expected)
{
	assert_memory_equal(&got->id, &expected->id, sizeof got->id);
	assert_memory_equal(&got->command_id, &expected->command_id, sizeof got->command_id);
	assert_text(got->tenant, expected->tenant);
	assert_text(got->aggregate_type, expected->aggregate_type);
	assert_text(got->aggregate_id, expected->aggregate_id);
	assert_text(got->type, expected->type);
	assert_text(canonical(bed, got->payload), canonical(bed, expected->payload));
	assert_int_equal(got->version, expected->version);
	assert_text(got->key, expected->key);
	assert_int_equal(got->ordinal, expected->ordinal);
	assert_text(got->correlation_id, expected->correlation_id);
	assert_text(got->causation_id, expected->causation_id);
	assert_text(got->traceparent, expected->traceparent);
	assert_text(got->tracestate, expected->tracestate);
	assert_true(got->at_us == expected->at_us);
	assert_text(got->topic, expected->topic);
	assert_text(got->partition_key, expected->partition_key);
	assert_text(canonical(bed, got->headers), canonical(bed, expected->headers));
}

static void assert_hold(const struct hold_row *got, const struct hold_row *expected)
{
	assert_text(got->tenant, expected->tenant);
	assert_memory_equal(&got->event_id, &expected->event_id, sizeof got->event_id);
	assert_text(got->aggregate_type, expected->aggregate_type);
	assert_text(got->aggregate_id, expected->aggregate_id);
	assert_int_equal(got->version, expected->version);
	assert_int_equal(got->state, expected->state);
	assert_int_equal(got->attempts, expected->attempts);
	assert_text(got->reason, expected->reason);
	assert_text(got->why, expected->why);
	if (expected->reason)
		assert_int_equal(got->failure, expected->failure);
	assert_true(got->next_us == expected->next_us);
	assert_true(got->since_us == expected->since_us);
}

void relays_share_the_lanes_of_a_destination(void **state) /* C03 I6 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	lease_all(bed, "kafka", "a", lanes);
	for (int i = 0; i < OUTBOX_LANES; i++) {
		assert_string_equal(lanes[i].destination, "kafka");
		assert_string_equal(lanes[i].cursor, "");
		assert_true(lanes[i].token > 0);
	}
	struct leased got = lease(bed, "kafka", "a", hour_us);
	assert_int_equal(got.count, 0);
	assert_int_equal(got.share, OUTBOX_LANES);
	got = lease(bed, "kafka", "b", hour_us); /* nothing is free, but it has said that it is there */
	assert_int_equal(got.count, 0);
	assert_int_equal(got.share, OUTBOX_LANES / 2);
	got = lease(bed, "kafka", "a", hour_us);
	assert_int_equal(got.count, 0);
	assert_int_equal(got.share, OUTBOX_LANES / 2);

	for (int i = 0; i < OUTBOX_LANES; i++)
		check(bed, settle(bed, &lanes[i], (struct lane_settlement){.lease_us = -1}));
	got = lease(bed, "kafka", "b", hour_us);
	assert_int_equal(got.count, OUTBOX_LANES / 2); /* its share, and not all that are free */
	for (size_t i = 0; i < got.count; i++)
		assert_true(got.items[i].token > lanes[got.items[i].lane].token);
	got = lease(bed, "kafka", "b", hour_us);
	assert_int_equal(got.count, 0); /* what it holds counts */
	got = lease(bed, "kafka", "c", hour_us);
	assert_int_equal(got.share, OUTBOX_LANES / 2); /* of three relays: no lane is left over */
	assert_int_equal(got.count, OUTBOX_LANES / 2);
	got = lease(bed, "kafka", "a", hour_us);
	assert_int_equal(got.count, 0);
	lease_all(bed, "hook", "b", lanes); /* each destination for itself */
	got = lease(bed, "hook", "c", hour_us);
	assert_int_equal(got.share, OUTBOX_LANES / 2);
	got = lease(bed, "hook", "c", 0); /* it goes, and leases nothing */
	assert_int_equal(got.count, 0);
	got = lease(bed, "hook", "b", hour_us);
	assert_int_equal(got.share, OUTBOX_LANES);
}

void share_grows_when_a_relay_is_gone(void **state) /* C03 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct leased got = lease(bed, "kafka", "a", 1000);
	assert_int_equal(got.count, OUTBOX_LANES);
	take_all(bed, "kafka", lanes);
	for (size_t i = 0; i < got.count; i++)
		assert_true(lanes[got.items[i].lane].token > got.items[i].token);
}

void lanes_are_listed_by_destination(void **state)
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], others[OUTBOX_LANES];
	struct lane_row *rows = NULL;
	assert_int_equal(list_lanes(bed, &rows), 0);
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "Hook", "b", others);
	check(bed, settle(bed, &lanes[1], (struct lane_settlement){.lease_us = -1}));
	assert_int_equal(list_lanes(bed, &rows), 2 * OUTBOX_LANES);
	for (int i = 0; i < 2 * OUTBOX_LANES; i++) {
		bool first = i < OUTBOX_LANES, free = i == OUTBOX_LANES + 1;
		assert_string_equal(rows[i].destination, first ? "Hook" : "kafka");
		assert_int_equal(rows[i].lane, i % OUTBOX_LANES);
		assert_text(rows[i].relay, first ? "b" : free ? NULL : "a");
		assert_true((rows[i].lease_until_us > 0) == !free);
		assert_true(rows[i].token == (first ? others : lanes)[i % OUTBOX_LANES].token);
		assert_int_equal(rows[i].moved_us, 0);
		assert_int_equal(rows[i].delivered, 0);
	}
}

struct leasing {
	pthread_t thread;
	struct store *store;
	char name[16];
	struct lane_lease *items;
	size_t count, share;
	struct arena arena;
	enum ibid_code code;
	struct ibid_err err;
};

static void *lease_in_thread(void *user)
{
	struct leasing *self = user;
	struct lane_wish wish = {.destination = "kafka", .relay = self->name, .lease_us = hour_us};
	self->code = self->store->ops->lease_lanes(self->store, &self->arena, &wish, &self->items,
	                                           &self->count, &self->share, &self->err);
	return NULL;
}

void lanes_leased_by_many_at_once_go_to_one_each(void **state) /* I6 */
{
	enum { RELAYS = 8 };
	struct bed *bed = bed_of(state);
	struct store *other = backend->patient();
	struct leasing relays[RELAYS] = {{.store = NULL}};
	unsigned taken[OUTBOX_LANES] = {0};
	be_patient(bed);
	for (unsigned i = 0; i < RELAYS; i++) {
		relays[i].store = i % 2 ? other : bed->store;
		snprintf(relays[i].name, sizeof relays[i].name, "relay-%u", i);
		assert_int_equal(pthread_create(&relays[i].thread, NULL, lease_in_thread, &relays[i]), 0);
	}
	for (size_t i = 0; i < RELAYS; i++)
		pthread_join(relays[i].thread, NULL);
	for (size_t i = 0; i < RELAYS; i++) {
		if (relays[i].code)
			fail_msg("%s: %s", relays[i].name, relays[i].err.text);
		for (size_t k = 0; k < relays[i].count; k++)
			taken[relays[i].items[k].lane]++;
	}
	for (size_t i = 0; i < RELAYS; i++) { /* whatever one left because another looked at it */
		struct leased got = lease(bed, "kafka", relays[i].name, hour_us);
		for (size_t k = 0; k < got.count; k++)
			taken[got.items[k].lane]++;
		arena_release(&relays[i].arena);
	}
	for (size_t i = 0; i < OUTBOX_LANES; i++)
		assert_int_equal(taken[i], 1);
	store_close(other);
}

void lanes_hold_each_aggregate_whole_and_in_order(void **state) /* C03 I5 */
{
	enum { AGGREGATES = 24, ROUNDS = 3 };
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct event_row *kept;
	int64_t versions[AGGREGATES] = {0};
	size_t kept_count, found = 0;
	char name[16];
	for (unsigned n = 0; n < AGGREGATES * ROUNDS; n++) {
		snprintf(name, sizeof name, "p-%u", n % AGGREGATES);
		send_event(bed, n + 1, name);
	}
	lease_all(bed, "kafka", "a", lanes);
	for (int i = 0; i < OUTBOX_LANES; i++) {
		struct lane_batch batch = read_lane(bed, &lanes[i], "", 100);
		assert_true(batch.count > 0); /* they spread */
		assert_false(batch.more);
		for (size_t k = 0; k < batch.count; k++) {
			const struct event_row *event = &batch.events[k].event;
			int64_t *version = &versions[atoi(event->aggregate_id + 2)];
			assert_false(batch.events[k].early);
			assert_int_equal(event->version, *version + 1);
			*version = event->version;
			check(bed, store_list_events(bed->store, &bed->arena, "acme", &event->command_id, 2,
			                             &kept, &kept_count, &bed->err));
			assert_int_equal(kept_count, 1);
			assert_event(bed, event, &kept[0]);
			found++;
		}
		assert_int_equal(read_lane(bed, &lanes[i], batch.cursor, 100).count, 0);
	}
	assert_int_equal(found, AGGREGATES * ROUNDS);
}

void lane_is_read_on_from_its_cursor(void **state) /* C03 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	for (unsigned n = 1; n <= 5; n++)
		send_event(bed, n, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch first = read_lane(bed, lane, "", 2);
	assert_int_equal(first.count, 2);
	assert_true(first.more);
	struct lane_batch second = read_lane(bed, lane, first.cursor, 3);
	assert_int_equal(second.count, 3);
	assert_int_equal(second.events[0].event.version, 3);
	assert_int_equal(second.events[2].event.version, 5);

	struct lane_batch none = read_lane(bed, lane, second.cursor, 3);
	assert_int_equal(none.count, 0);
	assert_false(none.more);
	send_event(bed, 6, "p-1");
	struct lane_batch last = read_lane(bed, lane, none.cursor, 3);
	assert_int_equal(last.count, 1);
	assert_int_equal(last.events[0].event.version, 6);
	assert_int_equal(read_lane(bed, lane, first.cursor, 9).count,
	                 4); /* a cursor may be used again */
}

void events_without_a_topic_or_a_commit_are_not_read(void **state) /* C03 I1 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct event_row silent = event_of(1, 1, 0), undone = event_of(2, 1, 0);
	struct outcome outcome;
	check(bed, put_events(bed, "silent", 1, &silent, 1, &outcome));
	struct tx *tx = claim_free(bed, "undone", 2);
	undone.topic = "payments";
	check(bed, bed->ops->put_event(tx, &undone, &bed->err));
	bed->ops->rollback(&tx);
	send_event(bed, 3, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	struct lane_batch batch = read_lane(bed, lane_of(bed, lanes, "p-1"), "", 9);
	assert_int_equal(batch.count, 1);
	assert_int_equal(batch.events[0].event.version, 2);
}

void event_that_is_committed_late_is_not_passed_over(void **state) /* C03: no skipping */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct event_row late = event_of(2, 1, 0);
	struct command_row row = completed("late", 2);
	late.topic = "payments";
	late.aggregate_id = "p-1";
	lease_all(bed, "kafka", "a", lanes);
	send_event(bed, 1, "p-1");
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct tx *tx = claim_free(bed, "late", 2);
	check(bed, bed->ops->put_event(tx, &late, &bed->err));
	if (!bed->ops->one_writer) /* one that has begun later, and is there earlier */
		for (unsigned n = 3; n < 20; n++) {
			char name[16];
			snprintf(name, sizeof name, "q-%u", n);
			send_event(bed, n, name);
		}
	struct lane_batch before = read_lane(bed, lane, "", 100);
	for (size_t i = 1; i < before.count; i++)
		assert_string_not_equal(before.events[i].event.aggregate_id, "p-1");
	complete_row(bed, &tx, &row, NULL);
	struct lane_batch after = read_lane(bed, lane, before.cursor, 100);
	assert_int_equal(after.count, 1);
	assert_string_equal(after.events[0].event.aggregate_id, "p-1");
	assert_int_equal(after.events[0].event.version, 2);
}

void cursor_is_found_again_by_the_next_holder(void **state) /* C03 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], next[OUTBOX_LANES];
	struct lane_row *rows;
	send_event(bed, 1, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	check(bed, settle(bed, lane, (struct lane_settlement){.cursor = batch.cursor}));
	list_lanes(bed, &rows);
	assert_true(rows[lane->lane].moved_us > 0);
	assert_string_equal(rows[lane->lane].relay, "a");
	for (int i = 0; i < OUTBOX_LANES; i++)
		check(bed, settle(bed, &lanes[i], (struct lane_settlement){.lease_us = -1}));

	lease_all(bed, "kafka", "a", next);
	for (int i = 0; i < OUTBOX_LANES; i++)
		assert_string_equal(next[i].cursor, i == lane->lane ? batch.cursor : "");
	send_event(bed, 2, "p-1");
	batch = read_lane(bed, &next[lane->lane], next[lane->lane].cursor, 9);
	assert_int_equal(batch.count, 1);
	assert_int_equal(batch.events[0].event.version, 2);
}

void lease_of_a_lane_is_prolonged_also_when_it_has_ended(void **state) /* I6 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct lane_row *rows;
	take_all(bed, "kafka", lanes);
	check(bed, settle(bed, &lanes[1], (struct lane_settlement){.lease_us = hour_us}));
	list_lanes(bed, &rows);
	assert_true(rows[1].lease_until_us > rows[0].lease_until_us + hour_us / 2);
	for (int tries = 0;; tries++) { /* the others are free; this one stays */
		char name[16];
		assert_true(tries < 5000);
		snprintf(name, sizeof name, "b-%d", tries);
		struct leased got = lease(bed, "kafka", name, 1000);
		for (size_t i = 0; i < got.count; i++)
			assert_int_not_equal(got.items[i].lane, 1);
		if (got.count == OUTBOX_LANES - 1)
			break;
		env_sleep_us(env_system(), 2000);
	}
	check(bed, settle(bed, &lanes[1], (struct lane_settlement){.lease_us = 0}));
}

void settlement_under_a_lost_lease_writes_nothing(void **state) /* I6 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease old[OUTBOX_LANES], lanes[OUTBOX_LANES];
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	struct exception_row exception = exception_of(1, "e-1"), *exceptions;
	struct delivery_row *deliveries;
	struct held_event *held;
	struct lane_row *rows;
	send_event(bed, 1, "p-1");
	send_event(bed, 2, "p-1");
	take_all(bed, "kafka", old);
	const struct lane_lease *lane = lane_of(bed, old, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct delivery_row delivery = delivery_of(&batch.events[0].event);
	struct hold_row hold = hold_of(&batch.events[1].event, HOLD_FAILED);
	take_all(bed, "kafka", lanes);
	struct lane_settlement whole = {
	    .cursor = batch.cursor,
	    .lease_us = hour_us,
	    .deliveries = &delivery,
	    .delivery_count = 1,
	    .holds = &hold,
	    .hold_count = 1,
	    .exceptions = &exception,
	    .exception_count = 1,
	};
	struct lane_settlement kept_still = whole; /* neither cursor nor lease moves */
	kept_still.cursor = NULL;
	kept_still.lease_us = 0;
	assert_int_equal(settle(bed, lane, whole), IBID_FENCED);
	assert_int_equal(settle(bed, lane, kept_still), IBID_FENCED);
	assert_int_equal(list_deliveries(bed, "acme", delivery.event_id, &deliveries), 0);
	assert_int_equal(list_held(bed, &lanes[lane->lane], &held), 0);
	assert_int_equal(list_exceptions(bed, &all, &exceptions), 0);
	list_lanes(bed, &rows);
	assert_int_equal(rows[lane->lane].delivered, 0);
	assert_int_equal(rows[lane->lane].moved_us, 0);
	take_all(bed, "kafka", old); /* and the lease was not prolonged */
	assert_string_equal(old[lane->lane].cursor, "");

	check(bed, settle(bed, &old[lane->lane], whole));
	assert_int_equal(list_deliveries(bed, "acme", delivery.event_id, &deliveries), 1);
	assert_int_equal(list_held(bed, &old[lane->lane], &held), 1);
	assert_int_equal(list_exceptions(bed, &all, &exceptions), 1);
	list_lanes(bed, &rows);
	assert_int_equal(rows[lane->lane].delivered, 1);
}

void settlement_is_all_or_nothing(void **state) /* I1 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct exception_row exception = exception_of(1, "e-1");
	struct delivery_row *deliveries;
	struct held_event *held;
	struct lane_row *rows;
	send_event(bed, 1, "p-1");
	send_event(bed, 2, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct delivery_row delivery = delivery_of(&batch.events[0].event);
	struct hold_row hold = hold_of(&batch.events[1].event, HOLD_PARKED);
	exception.owner = ""; /* which no store keeps */
	assert_int_not_equal(settle(bed, lane,
	                            (struct lane_settlement){.cursor = batch.cursor,
	                                                     .deliveries = &delivery,
	                                                     .delivery_count = 1,
	                                                     .holds = &hold,
	                                                     .hold_count = 1,
	                                                     .exceptions = &exception,
	                                                     .exception_count = 1}),
	                     IBID_OK);
	assert_int_equal(list_deliveries(bed, "acme", delivery.event_id, &deliveries), 0);
	assert_int_equal(list_held(bed, lane, &held), 0);
	list_lanes(bed, &rows);
	assert_int_equal(rows[lane->lane].moved_us, 0);
	check(bed, settle(bed, lane, (struct lane_settlement){.lease_us = 0})); /* it goes on */
}

void settlement_that_is_sent_again_counts_once(void **state) /* I7: its commit was unknown */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct delivery_row *deliveries;
	struct held_event *held;
	struct lane_row *rows;
	send_event(bed, 1, "p-1");
	send_event(bed, 2, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct delivery_row delivery = delivery_of(&batch.events[0].event);
	struct hold_row hold = hold_of(&batch.events[1].event, HOLD_FAILED);
	for (int i = 0; i < 2; i++)
		check(bed, settle(bed, lane,
		                  (struct lane_settlement){.cursor = batch.cursor,
		                                           .deliveries = &delivery,
		                                           .delivery_count = 1,
		                                           .holds = &hold,
		                                           .hold_count = 1}));
	assert_int_equal(list_deliveries(bed, "acme", delivery.event_id, &deliveries), 1);
	assert_int_equal(list_held(bed, lane, &held), 1);
	list_lanes(bed, &rows);
	assert_int_equal(rows[lane->lane].delivered, 1);
}

void what_has_evidence_is_left_out_where_it_is_doubtful(void **state) /* C03 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], others[OUTBOX_LANES];
	struct delivery_row deliveries[3];
	for (unsigned n = 1; n <= 3; n++)
		send_event(bed, n, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "hook", "a", others);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	for (size_t i = 0; i < 3; i++)
		deliveries[i] = delivery_of(&batch.events[i].event);
	check(bed, settle(bed, lane,
	                  (struct lane_settlement){.deliveries = deliveries, .delivery_count = 2}));
	struct lane_batch left = read_doubtful(bed, lane, "");
	assert_int_equal(left.count, 1);
	assert_int_equal(left.events[0].event.version, 3);
	assert_int_equal(read_doubtful(bed, &others[lane->lane], "").count, 3);
	assert_int_equal(read_lane(bed, lane, "", 9).count, 3);

	check(bed, settle(bed, lane,
	                  (struct lane_settlement){.deliveries = &deliveries[2], .delivery_count = 1}));
	left = read_doubtful(bed, lane, "");
	assert_int_equal(left.count, 0);
	/* The cursor is behind what was left out: nobody reads it again. */
	assert_int_equal(read_lane(bed, lane, left.cursor, 9).count, 0);
}

void held_events_are_listed_by_aggregate_and_version(void **state) /* C03 I5 I8 */
{
	enum { AGGREGATES = 9 };
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct lane_batch batch = {.count = 0};
	struct hold_row holds[2 * AGGREGATES];
	struct held_event *held;
	const struct lane_lease *lane = NULL;
	char name[16];
	for (unsigned n = 0; n < 2 * AGGREGATES; n++) {
		snprintf(name, sizeof name, "p-%u", AGGREGATES - n % AGGREGATES);
		send_event(bed, n + 1, name);
	}
	lease_all(bed, "kafka", "a", lanes);
	for (int i = 0; i < OUTBOX_LANES; i++) { /* one that has several aggregates */
		struct lane_batch found = read_lane(bed, &lanes[i], "", 100);
		if (found.count > batch.count) {
			batch = found;
			lane = &lanes[i];
		}
	}
	assert_true(batch.count >= 6);
	for (size_t i = 0; i < batch.count; i++) {
		const struct event_row *event = &batch.events[i].event;
		holds[i] = hold_of(event, event->version == 1 ? HOLD_FAILED : HOLD_WAITS);
	}
	check(bed,
	      settle(bed, lane, (struct lane_settlement){.holds = holds, .hold_count = batch.count}));
	assert_int_equal(list_held(bed, lane, &held), batch.count);
	for (size_t i = 0; i < batch.count; i++) {
		size_t at = 0;
		while (memcmp(&holds[at].event_id, &held[i].hold.event_id, sizeof(struct uuid)) != 0)
			assert_true(++at < batch.count);
		assert_hold(&held[i].hold, &holds[at]);
		assert_event(bed, &held[i].event, &batch.events[at].event);
		assert_int_equal(held[i].hold.version, i % 2 + 1);
		if (i % 2)
			assert_string_equal(held[i].hold.aggregate_id, held[i - 1].hold.aggregate_id);
		else if (i)
			assert_true(strcmp(held[i].hold.aggregate_id, held[i - 1].hold.aggregate_id) > 0);
	}
	for (int i = 0; i < OUTBOX_LANES; i++)
		if (&lanes[i] != lane)
			assert_int_equal(list_held(bed, &lanes[i], &held), 0);
}

void hold_is_replaced_and_left(void **state) /* C03 I8 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], others[OUTBOX_LANES];
	struct held_event *held;
	send_event(bed, 1, "p-1");
	send_event(bed, 2, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "hook", "a", others);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	const struct lane_lease *other = &others[lane->lane];
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct hold_row holds[2] = {hold_of(&batch.events[0].event, HOLD_FAILED),
	                            hold_of(&batch.events[1].event, HOLD_WAITS)};
	struct lane_settlement both = {.holds = holds, .hold_count = 2};
	check(bed, settle(bed, lane, both));
	check(bed, settle(bed, other, both));

	enum hold_state was = HOLD_FAILED;
	for (int i = HOLD_STATE_COUNT - 1; i >= 0; i--) {
		holds[0] = hold_of(&batch.events[0].event, (enum hold_state)i);
		holds[0].failure = FAILURE_POISON;
		holds[0].attempts = i;
		holds[0].held = true;
		holds[0].was = was;
		was = holds[0].state;
		check(bed, settle(bed, lane, (struct lane_settlement){.holds = holds, .hold_count = 1}));
		assert_int_equal(list_held(bed, lane, &held), 2);
		assert_hold(&held[0].hold, &holds[0]);
		assert_hold(&held[1].hold, &holds[1]);
	}
	struct delivery_row gone = delivery_of(&batch.events[0].event);
	gone.was_held = true;
	check(bed,
	      settle(bed, lane, (struct lane_settlement){.deliveries = &gone, .delivery_count = 1}));
	assert_int_equal(list_held(bed, lane, &held), 1);
	assert_hold(&held[0].hold, &holds[1]);
	assert_int_equal(list_held(bed, other, &held), 2); /* each destination has its own */
}

void evidence_of_an_event_is_listed_oldest_first_and_never_edited(void **state) /* C03 I3 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES], others[OUTBOX_LANES];
	struct delivery_row *got;
	send_event(bed, 1, "p-1");
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "hook", "a", others);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	const struct lane_lease *other = &others[lane->lane];
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct delivery_row late = delivery_of(&batch.events[0].event), early = late;
	late.at_us = now_us + 1;
	early.place = "https://example.com/ü";
	early.partition = -1;
	early.offset = -1;
	check(bed,
	      settle(bed, lane, (struct lane_settlement){.deliveries = &late, .delivery_count = 1}));
	check(bed,
	      settle(bed, other, (struct lane_settlement){.deliveries = &early, .delivery_count = 1}));
	assert_int_equal(list_deliveries(bed, "acme", late.event_id, &got), 2);
	assert_text(got[0].tenant, "acme");
	assert_text(got[0].destination, "hook");
	assert_true(got[0].token == other->token);
	assert_text(got[0].place, early.place);
	assert_int_equal(got[0].partition, -1);
	assert_true(got[0].offset == -1);
	assert_true(got[0].at_us == now_us);
	assert_memory_equal(&got[1].event_id, &late.event_id, sizeof late.event_id);
	assert_text(got[1].destination, "kafka");
	assert_true(got[1].token == lane->token);
	assert_text(got[1].place, "payments");
	assert_int_equal(got[1].partition, 3);
	assert_true(got[1].offset == INT64_C(5000000000));
	assert_true(got[1].at_us == now_us + 1);
	assert_int_equal(list_deliveries(bed, "other", late.event_id, &got), 0);
	assert_int_equal(list_deliveries(bed, "acme", make_id(9), &got), 0);

	assert_false(backend->exec(backend->sql[SUITE_EDIT_DELIVERY]));
	assert_false(backend->exec(backend->sql[SUITE_DELETE_DELIVERY]));
	assert_int_equal(list_deliveries(bed, "acme", late.event_id, &got), 2);
}

void exception_of_a_settlement_is_opened_once(void **state) /* I8 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct exception_row rows[2] = {exception_of(1, "e-1"), exception_of(2, "e-2")}, *got;
	struct exception_row again = exception_of(3, "e-1");
	struct exception_filter all = {.queue = -1, .state = -1, .limit = 9};
	again.reason = "ANOTHER";
	lease_all(bed, "kafka", "a", lanes);
	check(bed, settle(bed, &lanes[0],
	                  (struct lane_settlement){.exceptions = rows, .exception_count = 2}));
	check(bed, settle(bed, &lanes[1],
	                  (struct lane_settlement){.exceptions = &again, .exception_count = 1}));
	assert_int_equal(list_exceptions(bed, &all, &got), 2);
	assert_exception(&got[0], &rows[1]);
	assert_exception(&got[1], &rows[0]);
}
