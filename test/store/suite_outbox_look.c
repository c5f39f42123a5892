/* SPDX-License-Identifier: Apache-2.0 */
/* suite_outbox_look.c -- how events stand, and how many of them. */
#include "store/suite_bed.h"
#include "store/suite_tests.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- Looking at the outbox ------------------------------------------------------------------- */

/* One event of a command of its own, for these destinations ("a,b"). */
static struct uuid address_event(struct bed *bed, unsigned n, const char *tenant,
                                 const char *aggregate_id, const char *destinations)
{
	struct event_row event = event_of(n, 1, 0);
	struct outcome outcome;
	char key[32], headers[128];
	snprintf(key, sizeof key, "address-%u", n);
	snprintf(headers, sizeof headers, "{\"event_version\":\"1\",\"deliver_to\":\"%s\"}",
	         destinations);
	event.tenant = tenant;
	event.aggregate_id = aggregate_id;
	event.topic = "payments";
	event.headers = headers;
	check(bed, put_events(bed, key, n, &event, 1, &outcome));
	return uuid_nth(event.command_id, 1);
}

static size_t list_outbox(struct bed *bed, struct outbox_filter filter, struct outbox_row **ret)
{
	size_t found = 0;
	check(bed, store_list_outbox(bed->store, &bed->arena, &filter, ret, &found, &bed->err));
	return found;
}

static struct outbox_row outbox_of(struct bed *bed, struct uuid event_id, const char *destination)
{
	struct outbox_row *rows;
	struct outbox_filter filter = {.tenant = "acme", .event_id = &event_id, .state = -1};
	size_t found = list_outbox(bed, filter, &rows);
	for (size_t i = 0; i < found; i++)
		if (strcmp(rows[i].destination, destination) == 0)
			return rows[i];
	fail_msg("the event is not for %s", destination);
	return (struct outbox_row){0};
}

void event_is_pending_until_a_relay_claims_its_lane_and_published_by_evidence(
    void **state) /* C02 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct uuid id = address_event(bed, 1, "acme", "p-1", "kafka,hook");
	struct outbox_row row = outbox_of(bed, id, "kafka");
	assert_int_equal(row.state, OUTBOX_PENDING);
	assert_text(row.tenant, "acme");
	assert_memory_equal(&row.event_id, &id, sizeof id);
	assert_non_null(row.event_key);
	assert_text(row.type, "PaymentCreated");
	assert_text(row.aggregate_type, "payment");
	assert_text(row.aggregate_id, "p-1");
	assert_int_equal(row.version, 1);
	assert_text(row.topic, "payments");
	assert_int_equal(row.attempts, 0);
	assert_text(row.reason, NULL);
	assert_text(row.relay, NULL);
	assert_text(row.place, NULL);
	assert_int_equal(row.partition, -1);
	assert_true(row.offset == -1 && row.published_us == 0 && row.since_us == 0 && row.next_us == 0);
	assert_true(row.created_us == now_us);

	lease_all(bed, "kafka", "relay-a", lanes);
	row = outbox_of(bed, id, "kafka");
	assert_int_equal(row.state, OUTBOX_CLAIMED);
	assert_text(row.relay, "relay-a");
	assert_int_equal(outbox_of(bed, id, "hook").state, OUTBOX_PENDING);

	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct delivery_row first = delivery_of(&batch.events[0].event), again = first;
	again.at_us++;
	again.offset++;
	struct delivery_row both[] = {again, first};
	check(bed, settle(bed, lane,
	                  (struct lane_settlement){
	                      .lease_us = -1, .deliveries = both, .delivery_count = 2}));
	row = outbox_of(bed, id, "kafka");
	assert_int_equal(row.state, OUTBOX_PUBLISHED);
	assert_text(row.relay, NULL);
	assert_text(row.place, "payments");
	assert_int_equal(row.partition, 3);
	assert_true(row.offset == first.offset); /* of the first that arrived */
	assert_true(row.published_us == now_us);

	struct uuid next = address_event(bed, 2, "acme", "p-1", "kafka");
	assert_int_equal(outbox_of(bed, next, "kafka").state, OUTBOX_PENDING); /* it was given up */
}

void event_that_is_held_says_why_and_what_it_waits_for(void **state) /* C02 C04 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct uuid ids[4];
	for (unsigned n = 0; n < 4; n++)
		ids[n] = address_event(bed, n + 1, "acme", "p-1", "hook,kafka");
	lease_all(bed, "kafka", "relay-a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	static const enum hold_state states[] = {HOLD_PARKED, HOLD_WAITS, HOLD_WAITS};
	struct hold_row holds[3];
	for (size_t i = 0; i < 3; i++)
		holds[i] = hold_of(&batch.events[i].event, states[i]);
	struct lane_settlement settlement = {.holds = holds, .hold_count = 3};
	check(bed, settle(bed, lane, settlement));
	struct outbox_row row = outbox_of(bed, ids[0], "kafka");
	assert_int_equal(row.state, OUTBOX_PARKED);
	assert_int_equal(row.attempts, 2);
	assert_text(row.failure, failure_class_name(FAILURE_CAPACITY));
	assert_text(row.reason, "HTTP_503");
	assert_text(row.why, holds[0].why);
	assert_true(row.next_us == now_us + 7 && row.since_us == now_us && row.waits_for == 0);
	for (size_t i = 1; i < 3; i++) {
		row = outbox_of(bed, ids[i], "kafka");
		assert_int_equal(row.state, OUTBOX_PENDING);
		assert_text(row.reason, "PREDECESSOR_HELD");
		assert_text(row.why, "it waits for version 1 of its aggregate, which is PARKED");
		assert_int_equal(row.waits_for, 1);
		assert_text(row.failure, NULL);
		assert_text(row.relay, NULL);
		assert_true(row.since_us == now_us);
	}
	assert_int_equal(outbox_of(bed, ids[3], "kafka").state, OUTBOX_CLAIMED);
	assert_int_equal(outbox_of(bed, ids[0], "hook").state, OUTBOX_PENDING); /* each for itself */
	assert_text(outbox_of(bed, ids[0], "hook").reason, NULL);

	static const struct {
		enum hold_state held;
		enum outbox_state shown;
	} moves[] = {{HOLD_FAILED, OUTBOX_FAILED},
	             {HOLD_RELEASED, OUTBOX_PENDING},
	             {HOLD_SKIPPED, OUTBOX_SKIPPED}};
	const struct event_row *event = &batch.events[0].event;
	enum hold_state from = HOLD_PARKED;
	for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
		check(bed, decide_hold(bed, "kafka", event, from, moves[i].held));
		assert_int_equal(outbox_of(bed, ids[0], "kafka").state, moves[i].shown);
		from = moves[i].held;
	}
	row = outbox_of(bed, ids[1], "kafka"); /* behind what was skipped: it is the next */
	assert_int_equal(row.state, OUTBOX_PENDING);
	assert_int_equal(row.waits_for, 0);
	holds[1].reason = "PREDECESSOR_COMES";
	holds[1].held = true;
	holds[1].was = HOLD_WAITS;
	check(bed, settle(bed, lane, (struct lane_settlement){.holds = &holds[1], .hold_count = 1}));
	row = outbox_of(bed, ids[1], "kafka");
	assert_text(row.reason, "PREDECESSOR_COMES");
	assert_text(row.why, "the event before it in its aggregate has yet to be read");
	assert_text(row.failure, NULL);
}

/* Pages of one row each bring the same as one page of all. */
static void assert_pages(struct bed *bed, struct outbox_filter filter)
{
	struct outbox_row *all, *page;
	struct uuid after;
	char destination[16];
	size_t found = list_outbox(bed, filter, &all);
	filter.limit = 1;
	for (size_t i = 0; i < found; i++) {
		assert_int_equal(list_outbox(bed, filter, &page), 1);
		assert_memory_equal(&page->event_id, &all[i].event_id, sizeof after);
		assert_text(page->destination, all[i].destination);
		after = page->event_id;
		snprintf(destination, sizeof destination, "%s", page->destination);
		filter.after = &after;
		filter.after_destination = destination;
	}
	assert_int_equal(list_outbox(bed, filter, &page), 0);
	if (found) { /* an event alone leaves out all of its destinations */
		after = all[0].event_id;
		filter.after_destination = NULL;
		for (size_t n = list_outbox(bed, filter, &page); n; n = 0)
			assert_true(memcmp(&page->event_id, &after, sizeof after) < 0);
	}
}

void outbox_is_listed_newest_first_by_its_filters(void **state) /* C02 I9 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct outbox_row *rows;
	struct outbox_filter every = {.state = -1, .limit = 100};
	struct event_row mute = event_of(9, 1, 0), unsent = event_of(8, 1, 0), got;
	struct outcome outcome;
	mute.topic = "payments"; /* of a contract that names no destination */
	mute.headers = "{\"event_version\":\"1\"}";
	check(bed, put_events(bed, "mute", 9, &mute, 1, &outcome));
	check(bed, put_events(bed, "unsent", 8, &unsent, 1, &outcome));
	assert_int_equal(list_outbox(bed, every, &rows), 0);

	struct uuid first = address_event(bed, 11, "acme", "p-1", "kafka,hook");
	struct uuid theirs = address_event(bed, 12, "other", "p-1", "kafka,hook");
	struct uuid second = address_event(bed, 13, "acme", "p-1", "kafka,hook");
	struct uuid third = address_event(bed, 14, "acme", "p-2", "hook");
	assert_int_equal(list_outbox(bed, every, &rows), 7);
	static const char *const order[] = {"hook", "hook", "kafka", "hook", "kafka", "hook", "kafka"};
	const struct uuid *ids[] = {&third, &second, &second, &theirs, &theirs, &first, &first};
	for (size_t i = 0; i < 7; i++) {
		assert_memory_equal(&rows[i].event_id, ids[i], sizeof first);
		assert_text(rows[i].destination, order[i]);
		assert_text(rows[i].tenant, ids[i] == &theirs ? "other" : "acme");
	}
	struct outbox_filter filter = every;
	filter.tenant = "acme";
	assert_int_equal(list_outbox(bed, filter, &rows), 5);
	filter.destination = "kafka";
	assert_int_equal(list_outbox(bed, filter, &rows), 2);
	filter.type = "PaymentVoided";
	assert_int_equal(list_outbox(bed, filter, &rows), 0);
	filter = every;
	filter.aggregate_type = "payment";
	filter.aggregate_id = "p-2";
	assert_int_equal(list_outbox(bed, filter, &rows), 1);
	filter = every;
	filter.event_id = &theirs;
	filter.tenant = "acme";
	assert_int_equal(list_outbox(bed, filter, &rows), 0); /* another tenant's is not there */
	assert_int_equal(store_get_event(bed->store, &bed->arena, "acme", &theirs, &got, &bed->err),
	                 IBID_NOT_FOUND);
	check(bed, store_get_event(bed->store, &bed->arena, "other", &theirs, &got, &bed->err));
	assert_text(got.aggregate_id, "p-1");
	assert_memory_equal(&got.id, &theirs, sizeof theirs);

	lease_all(bed, "hook", "a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-2");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	struct hold_row hold = {0};
	for (size_t i = 0; i < batch.count; i++)
		if (strcmp(batch.events[i].event.aggregate_id, "p-2") == 0)
			hold = hold_of(&batch.events[i].event, HOLD_FAILED);
	check(bed, settle(bed, lane, (struct lane_settlement){.holds = &hold, .hold_count = 1}));
	static const struct {
		enum outbox_state state;
		size_t count;
	} expected[] = {{OUTBOX_PENDING, 3},  {OUTBOX_CLAIMED, 3}, {OUTBOX_PUBLISHED, 0},
	                {OUTBOX_FAILED, 1},   {OUTBOX_PARKED, 0},  {OUTBOX_SKIPPED, 0},
	                {OUTBOX_CANCELLED, 0}};
	assert_pages(bed, every);
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		filter = every;
		filter.state = (int)expected[i].state;
		assert_int_equal(list_outbox(bed, filter, &rows), expected[i].count);
		for (size_t k = 0; k < expected[i].count; k++)
			assert_int_equal(rows[k].state, expected[i].state);
		assert_pages(bed, filter);
		filter.tenant = "acme";
		assert_pages(bed, filter);
		filter.destination = "hook";
		filter.aggregate_id = "p-2";
		filter.type = "PaymentCreated";
		assert_int_equal(list_outbox(bed, filter, &rows), expected[i].state == OUTBOX_FAILED);
	}
}

/* ---- How the outbox stands ------------------------------------------------------------------- */

static void count_all(struct bed *bed, size_t limit)
{
	bool more = true;
	for (int steps = 0; more; steps++) {
		assert_true(steps < 10000);
		check(bed, bed->ops->count_outbox(bed->store, limit, &more, &bed->err));
	}
}

/* Zero where nothing is known of it. */
static struct backlog_row backlog(struct bed *bed, const char *destination)
{
	struct backlog_row *rows = NULL;
	size_t found = 0;
	check(bed, bed->ops->measure_outbox(bed->store, &bed->arena, &rows, &found, &bed->err));
	for (size_t i = 0; i < found; i++) {
		assert_true(!i || strcmp(rows[i - 1].destination, rows[i].destination) < 0);
		if (strcmp(rows[i].destination, destination) == 0)
			return rows[i];
	}
	return (struct backlog_row){.backlog = 0};
}

static void assert_backlog(struct bed *bed, const char *destination, int64_t written,
                           int64_t waiting)
{
	struct backlog_row row = backlog(bed, destination);
	assert_int_equal(row.written, written);
	assert_int_equal(row.backlog, waiting);
	assert_int_equal(row.oldest_us > 0, waiting > 0);
}

/* One settlement of what is next in the lane, all of it delivered. */
static const char *deliver(struct bed *bed, const struct lane_lease *lane, const char *cursor,
                           size_t limit, bool keeps)
{
	struct lane_batch batch = read_lane(bed, lane, cursor, limit);
	struct delivery_row *rows = arena_array(&bed->arena, batch.count + 1, sizeof *rows);
	for (size_t i = 0; i < batch.count; i++)
		rows[i] = delivery_of(&batch.events[i].event);
	check(bed, settle(bed, lane,
	                  (struct lane_settlement){.cursor = keeps ? batch.cursor : NULL,
	                                           .deliveries = rows,
	                                           .delivery_count = batch.count}));
	return batch.cursor;
}

static const char to_hook[] = "{\"event_version\":\"1\",\"deliver_to\":\"hook\"}";

void backlog_is_told_for_each_destination_that_an_event_names(void **state) /* K01 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct event_row silent = event_of(4, 1, 0);
	struct outcome outcome;
	assert_backlog(bed, "kafka", 0, 0);
	send_many(bed, 1, 2, "p-1", to_both);
	send_many(bed, 2, 1, "p-2", to_hook);
	send_many(bed, 3, 1, "p-3", "{\"event_version\":\"1\"}"); /* it goes nowhere */
	check(bed, put_events(bed, "silent", 4, &silent, 1, &outcome));
	for (int counted = 0; counted < 2; counted++) { /* nobody need have counted */
		assert_backlog(bed, "kafka", 2, 2);
		assert_backlog(bed, "hook", 3, 3);
		count_all(bed, 1);
	}
	struct backlog_row row = backlog(bed, "kafka");
	assert_int_equal(row.leased, 0);
	assert_true(row.moved_us == 0);
	lease_all(bed, "kafka", "a", lanes);
	lease_all(bed, "idle", "a", lanes); /* nothing was ever for it */
	assert_int_equal(backlog(bed, "kafka").leased, OUTBOX_LANES);
	assert_int_equal(backlog(bed, "idle").leased, OUTBOX_LANES);
	assert_backlog(bed, "idle", 0, 0);
}

void what_arrived_is_held_or_skipped_is_told_apart(void **state) /* K01 C06 */
{
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	struct hold_row holds[4];
	send_many(bed, 1, 6, "p-1", to_both);
	lease_all(bed, "kafka", "a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	struct lane_batch batch = read_lane(bed, lane, "", 9);
	static const enum hold_state states[] = {HOLD_SKIPPED, HOLD_PARKED, HOLD_FAILED, HOLD_WAITS};
	struct delivery_row delivery = delivery_of(&batch.events[0].event);
	for (size_t i = 0; i < 4; i++)
		holds[i] = hold_of(&batch.events[i + 1].event, states[i]);
	/* The cursor is kept later: what became of them is known all the same. */
	for (int kept = 0; kept < 2; kept++) {
		check(bed, settle(bed, lane,
		                  (struct lane_settlement){.cursor = kept ? batch.cursor : NULL,
		                                           .deliveries = &delivery,
		                                           .delivery_count = 1,
		                                           .holds = holds,
		                                           .hold_count = 4}));
		if (kept) /* the sixth is behind it */
			send_many(bed, 2, 1, "p-1", to_both);
		count_all(bed, 2);
		struct backlog_row row = backlog(bed, "kafka");
		assert_int_equal(row.backlog, 4);
		assert_int_equal(row.held, 3);
		assert_int_equal(row.parked, 1);
		assert_int_equal(row.failed, 1);
		assert_true(row.oldest_us > 0);
	}
	assert_backlog(bed, "hook", 7, 7);
	assert_true(backlog(bed, "kafka").moved_us > 0);
}

void large_backlog_is_brought_forward_and_exact_at_the_cursor(void **state) /* K01 */
{
	enum { COMMANDS = 52, EVENTS = 100, ALL = COMMANDS * EVENTS, BATCH = 200 };
	static_assert(ALL > 2 * BACKLOG_NEAR, "counters are used, and then they are not");
	struct bed *bed = bed_of(state);
	struct lane_lease lanes[OUTBOX_LANES];
	const char *cursor = "";
	int64_t passed = 0;
	for (unsigned n = 0; n < COMMANDS; n++) {
		send_many(bed, n + 1, EVENTS, "p-1", n % 2 ? to_both : to_hook);
		if (n % 5 == 0)
			count_all(bed, 70);
	}
	assert_backlog(bed, "kafka", ALL / 2, ALL / 2);
	assert_backlog(bed, "hook", ALL, ALL);
	lease_all(bed, "hook", "a", lanes);
	const struct lane_lease *lane = lane_of(bed, lanes, "p-1");
	for (unsigned n = 0; passed < ALL; n++, passed += BATCH) {
		bool more = false;
		assert_backlog(bed, "hook", ALL, ALL - passed);
		cursor = deliver(bed, lane, cursor, BATCH, true);
		if (n % 3 == 1)
			check(bed, bed->ops->count_outbox(bed->store, 30, &more, &bed->err));
	}
	assert_backlog(bed, "hook", ALL, 0);
	assert_backlog(bed, "kafka", ALL / 2, ALL / 2);
}

struct counter {
	struct store *store;
	enum ibid_code code;
	struct ibid_err err;
	atomic_bool *stop;
};

static void *keep_counting(void *arg)
{
	struct counter *self = arg;
	bool more;
	while (!self->code && !atomic_load(self->stop))
		self->code = self->store->ops->count_outbox(self->store, 7, &more, &self->err);
	return NULL;
}

void event_counted_by_many_at_once_is_counted_once(void **state) /* K01 */
{
	enum { COUNTERS = 3, COMMANDS = 60, EVENTS = 20 };
	struct bed *bed = bed_of(state);
	struct counter counters[COUNTERS];
	pthread_t threads[COUNTERS];
	atomic_bool stop = false;
	be_patient(bed);
	for (size_t i = 0; i < COUNTERS; i++) {
		counters[i] = (struct counter){.store = bed->store, .stop = &stop};
		assert_int_equal(pthread_create(&threads[i], NULL, keep_counting, &counters[i]), 0);
	}
	for (unsigned n = 0; n < COMMANDS; n++) {
		char name[16];
		snprintf(name, sizeof name, "p-%u", n % 9);
		send_many(bed, n + 1, EVENTS, name, n % 3 ? to_both : to_hook);
	}
	atomic_store(&stop, true);
	for (size_t i = 0; i < COUNTERS; i++) {
		pthread_join(threads[i], NULL);
		if (counters[i].code)
			fail_msg("%s", counters[i].err.text);
	}
	count_all(bed, 100);
	assert_backlog(bed, "hook", COMMANDS * EVENTS, COMMANDS * EVENTS);
	assert_backlog(bed, "kafka", COMMANDS * EVENTS * 2 / 3, COMMANDS * EVENTS * 2 / 3);
}
