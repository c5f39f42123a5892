/* SPDX-License-Identifier: Apache-2.0 */
/* A lane of the relay itself, step by step, with a clock that is moved.
 *
 * What it sends to one destination is in order (I5), also where the events of an aggregate go to
 * several and are read before those that they come behind. That happens on PostgreSQL, where ids of
 * transactions are not in the order of commits, and where a reading is cut between them. It goes
 * on soon when a destination is back, and sends nothing when the lane is another's. */
#include "relay/lane.h"
#include "store/pg_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { AGGREGATES = 3, VERSIONS_MAX = 1000, LEASE_US = 60000000, LATER_US = 1100000 };

static void run(PGconn *link, const char *sql)
{
	PGresult *result = PQexec(link, sql);
	ExecStatusType status = PQresultStatus(result);
	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(link));
	PQclear(result);
}

/* ---- A destination -------------------------------------------------------------------------- */

/* It takes what comes, or refuses some of it for a while, and looks at the order. */
struct sink {
	struct broker broker;
	struct channel channel;
	char names[AGGREGATES][16];
	bool came[AGGREGATES][VERSIONS_MAX]; /* by version */
	int last[AGGREGATES];
	size_t count;
	unsigned seed, refuses; /* one in so many; 0: none */
	bool down;
	const char *meanwhile; /* SQL: what happens while a channel is opened; NULL: nothing */
};

static unsigned pick(unsigned *seed, unsigned below)
{
	*seed = *seed * 1103515245u + 12345u;
	return (*seed >> 16) % below;
}

static int version_of(const struct record *record)
{
	for (size_t i = 0; i < record->header_count; i++)
		if (strcmp(record->headers[i].name, "aggregateversion") == 0)
			return atoi(record->headers[i].value);
	fail_msg("an event without a version");
	return 0;
}

static int aggregate_of(const struct sink *sink, const char *name)
{
	for (int i = 0; i < AGGREGATES; i++)
		if (strcmp(sink->names[i], name) == 0)
			return i;
	fail_msg("%s", name);
	return 0;
}

static void take(struct sink *sink, struct record *record)
{
	int of = aggregate_of(sink, record->subject), version = version_of(record);
	assert_true(version > 0 && version < VERSIONS_MAX);
	if (!sink->came[of][version] && version < sink->last[of])
		fail_msg("version %d of %s after %d", version, record->subject, sink->last[of]);
	if (!sink->came[of][version])
		sink->last[of] = version;
	sink->count += !sink->came[of][version];
	sink->came[of][version] = true;
	record->end = RECORD_ACKED;
	snprintf(record->place, sizeof record->place, "sink");
}

static enum ibid_code publish(struct channel *channel, struct record *records, size_t count,
                              const atomic_bool *stop, struct ibid_err *err)
{
	struct sink *sink = (struct sink *)channel->broker;
	bool stuck[AGGREGATES] = {false};
	(void)stop;
	if (sink->down)
		return err_set(err, IBID_UNAVAILABLE, "nobody is there");
	for (size_t i = 0; i < count; i++) {
		int of = aggregate_of(sink, records[i].subject);
		if (stuck[of])
			continue;
		stuck[of] = sink->refuses && pick(&sink->seed, sink->refuses) == 0;
		if (!stuck[of]) {
			take(sink, &records[i]);
			continue;
		}
		records[i].end = RECORD_FAILED;
		records[i].failure = FAILURE_TRANSIENT;
		records[i].reason = "NOT_NOW";
	}
	return IBID_OK;
}

static enum ibid_code open_channel(struct broker *broker, const char *name, struct channel **ret,
                                   struct ibid_err *err)
{
	struct sink *sink = (struct sink *)broker;
	(void)name;
	(void)err;
	if (sink->meanwhile) {
		PGconn *link = fixture_connect(fixture_own_url());
		run(link, sink->meanwhile);
		PQfinish(link);
	}
	sink->channel.broker = broker;
	*ret = &sink->channel;
	return IBID_OK;
}

static void close_channel(struct channel *channel)
{
	(void)channel;
}

/* ---- A bed: a lane of that destination, and whoever writes ---------------------------------- */

struct bed {
	struct store *store;
	struct arena arena;
	struct env_virtual clock;
	struct sink sink;
	struct relay relay;
	struct lane_lease lease;
	struct relay_lane *lane;
};

/* Begin, and get the transaction its id. */
static PGconn *begin(void)
{
	PGconn *link = fixture_connect(fixture_own_url());
	run(link, "begin");
	run(link, "select pg_current_xact_id()");
	return link;
}

static void end(PGconn *link, const char *how)
{
	run(link, how);
	PQfinish(link);
}

/* `goals`: as in deliver_to; "": nowhere. */
static void emit(PGconn *link, const char *aggregate, const char *goals)
{
	char sql[512], id[UUID_TEXT_SIZE];
	uuid_write(uuid_v7(env_system()), id);
	snprintf(
	    sql, sizeof sql,
	    "select ibid.append_event('acme', '%s', 1, 'order', '%s', 'Told', '{\"n\":1}', null, "
	    "null, null, null, now(), null, null, nullif('%s', ''), null, '{\"deliver_to\":\"%s\"}')",
	    id, aggregate, goals, goals);
	run(link, sql);
}

static void name_aggregates(struct bed *bed)
{
	PGconn *link = fixture_connect(fixture_own_url());
	PGresult *result = PQexec(link,
	                          "select 'a' || g from generate_series(1, 200) as g "
	                          "where ibid_internal.lane_of('acme', 'order', 'a' || g) = 0 limit 3");
	assert_int_equal(PQntuples(result), AGGREGATES);
	for (int i = 0; i < AGGREGATES; i++)
		snprintf(bed->sink.names[i], sizeof bed->sink.names[i], "%s", PQgetvalue(result, i, 0));
	PQclear(result);
	PQfinish(link);
}

static void lease(struct bed *bed)
{
	struct lane_wish wish = {.destination = "d", .relay = "bed", .lease_us = LEASE_US};
	struct lane_lease *leases = NULL;
	size_t count = 0, share = 0;
	struct ibid_err err;
	if (bed->store->ops->lease_lanes(bed->store, &bed->arena, &wish, &leases, &count, &share, &err))
		fail_msg("lease: %s", err.text);
	assert_true(count > 0 && leases[0].lane == 0);
	bed->lease = leases[0];
	bed->lane = lane_new(&bed->relay, &bed->lease);
	assert_non_null(bed->lane);
}

static void bed_init(struct bed *bed, size_t batch)
{
	static const struct broker_ops ops = {
	    .open_channel = open_channel, .publish = publish, .close_channel = close_channel};
	struct ibid_err err;
	*bed = (struct bed){.sink = {.broker = {.ops = &ops, .name = "d"}, .seed = 1}};
	env_virtual_init(&bed->clock, INT64_C(1800000000) * 1000000, 1);
	bed->store = fixture_fresh();
	name_aggregates(bed);
	relay_init(&bed->relay, &(struct relay_options){
	                            .store = bed->store,
	                            .broker = &bed->sink.broker,
	                            .name = "bed",
	                            .env = &bed->clock.env,
	                            .lease_us = LEASE_US,
	                            .batch = batch,
	                            .policy = {.attempts_max = 1000, .base_us = 1000, .cap_us = 1000},
	                        });
	if (relay_look_at_pauses(&bed->relay, &err))
		fail_msg("pauses: %s", err.text);
	lease(bed);
}

static void bed_release(struct bed *bed)
{
	lane_free(bed->lane);
	relay_release(&bed->relay);
	store_close(bed->store);
	arena_release(&bed->arena);
}

static void step(struct bed *bed)
{
	int64_t wait_us = 0;
	struct ibid_err err;
	if (lane_step(bed->lane, &wait_us, &err))
		fail_msg("step: %s", err.text);
}

/* It is killed, and what it knew and had not kept is lost; another follows when its lease is over.
 */
static void kill_lane(struct bed *bed)
{
	struct ibid_err err;
	lane_free(bed->lane);
	if (bed->store->ops->settle_lane(
	        bed->store, &(struct lane_settlement){.lease = &bed->lease, .lease_us = -1}, &err))
		fail_msg("give up: %s", err.text);
	lease(bed);
}

/* Until all that is to go there came, and nothing is held. */
static void assert_all_comes(struct bed *bed)
{
	const char *all = "select count(*) from ibid.event where topic is not null and "
	                  "'d' = any (string_to_array(headers::json ->> 'deliver_to', ','))";
	size_t expected = (size_t)fixture_number(all);
	for (int i = 0; i < 5000; i++) {
		step(bed);
		env_virtual_advance(&bed->clock, LATER_US);
		if (bed->sink.count == expected &&
		    !fixture_number("select count(*) from ibid.delivery_hold"))
			return;
	}
	fail_msg("%zu of %zu came, %d are held", bed->sink.count, expected,
	         (int)fixture_number("select count(*) from ibid.delivery_hold"));
}

/* ---- Order ---------------------------------------------------------------------------------- */

/* Version 1 has the greatest id, and comes last. */
static void write_first_last(struct bed *bed, const char *const goals[3], bool third_before)
{
	PGconn *one = begin(), *other = begin(), *last = begin();
	PGconn *second = third_before ? other : one, *third = third_before ? one : other;
	emit(last, bed->sink.names[0], goals[0]);
	end(last, "commit");
	emit(second, bed->sink.names[0], goals[1]);
	end(second, "commit");
	emit(third, bed->sink.names[0], goals[2]);
	end(third, "commit");
}

static void what_goes_elsewhere_hides_no_predecessor(void **state) /* C04 */
{
	static const char *const goals[][3] = {
	    {"d", "e", "d"}, {"d", "d", "d"}, {"e", "e", "d"}, {"d", "", "d"}, {"d", "e", "e,d"}};
	(void)state;
	for (size_t batch = 1; batch <= 2; batch++) {
		struct bed bed;
		bed_init(&bed, batch);
		for (size_t i = 0; i < 2 * sizeof goals / sizeof *goals; i++) {
			write_first_last(&bed, goals[i / 2], i & 1);
			assert_all_comes(&bed);
		}
		bed_release(&bed);
	}
}

/* After each of the first steps, with the cursor kept or as it was. */
static void what_is_known_of_it_survives_whoever_knew_it(void **state) /* C04 C05 */
{
	static const char *const goals[3] = {"d", "e", "d"};
	struct bed bed;
	(void)state;
	bed_init(&bed, 1);
	for (int i = 0; i < 24; i++) {
		write_first_last(&bed, goals, i & 1);
		for (int steps = 0; steps <= i / 4; steps++) {
			step(&bed);
			env_virtual_advance(&bed.clock, i & 2 ? LATER_US : 1);
		}
		kill_lane(&bed);
		assert_all_comes(&bed);
	}
	bed_release(&bed);
}

static void in_one_transaction_it_hides_none_either(void **state) /* C04 */
{
	struct bed bed;
	(void)state;
	bed_init(&bed, 1);
	PGconn *second = begin(), *first = begin();
	emit(first, bed.sink.names[0], "d");
	end(first, "commit");
	emit(second, bed.sink.names[0], "e");
	emit(second, bed.sink.names[0], "d");
	end(second, "commit");
	assert_all_comes(&bed);
	bed_release(&bed);
}

/* ---- Outages -------------------------------------------------------------------------------- */

/* However long it was away, and whatever pause an event's next attempt has. */
static void destination_that_is_back_is_noticed_within_half_a_minute(void **state) /* F02 */
{
	enum { SECONDS = 30, HOUR = 3600 };
	struct bed bed;
	(void)state;
	bed_init(&bed, 10);
	bed.relay.options.policy.base_us = bed.relay.options.policy.cap_us = INT64_C(1000000) * HOUR;
	PGconn *link = begin();
	for (int i = 0; i < AGGREGATES; i++)
		emit(link, bed.sink.names[i], "d");
	end(link, "commit");
	bed.sink.down = true;
	for (int i = 0; i < 2 * HOUR; i += SECONDS) {
		step(&bed);
		env_virtual_advance(&bed.clock, INT64_C(1000000) * SECONDS);
	}
	bed.sink.down = false;
	step(&bed);
	env_virtual_advance(&bed.clock, INT64_C(1000000) * SECONDS);
	step(&bed);
	assert_int_equal(bed.sink.count, AGGREGATES);
	assert_int_equal(fixture_number("select count(*) from ibid.delivery_hold"), 0);
	bed_release(&bed);
}

/* ---- Whose lane it is ----------------------------------------------------------------------- */

/* Opening takes time, and a process may be stopped in it: the destination would let in whoever
 * opened last, and that need not be who leased last. */
static void who_lost_its_lane_while_a_channel_was_opened_sends_nothing(void **state) /* C07 C08 */
{
	struct bed bed;
	struct ibid_err err;
	int64_t wait_us = 0;
	(void)state;
	bed_init(&bed, 10);
	PGconn *link = begin();
	emit(link, bed.sink.names[0], "d");
	end(link, "commit");
	bed.sink.meanwhile = "update ibid.relay_lane set token = token + 1, relay = 'other' "
	                     "where destination = 'd' and lane = 0";
	assert_int_equal(lane_step(bed.lane, &wait_us, &err), IBID_FENCED);
	assert_int_equal(bed.sink.count, 0);
	assert_int_equal(fixture_number("select count(*) from ibid.delivery"), 0);
	bed_release(&bed);
}

/* ---- Whatever the interleaving -------------------------------------------------------------- */

enum { WRITERS = 6, MOVES = 900 };

struct writers {
	PGconn *links[WRITERS]; /* NULL: no transaction is open */
	bool wrote[WRITERS];
	int owner[AGGREGATES]; /* whose transaction has moved its head; -1: nobody's */
	unsigned seed;
};

static void end_one(struct writers *writers, int i)
{
	end(writers->links[i], pick(&writers->seed, 6) ? "commit" : "rollback");
	writers->links[i] = NULL;
	writers->wrote[i] = false;
	for (int of = 0; of < AGGREGATES; of++)
		if (writers->owner[of] == i)
			writers->owner[of] = -1;
}

static void write_some(struct bed *bed, struct writers *writers)
{
	static const char *const goals[] = {"d", "d", "e", "e", "d,e", ""};
	int i = (int)pick(&writers->seed, WRITERS), of = (int)pick(&writers->seed, AGGREGATES);
	if (!writers->links[i]) {
		writers->links[i] = begin();
	} else if (writers->wrote[i] && pick(&writers->seed, 2)) {
		end_one(writers, i);
	} else if (writers->owner[of] == -1 || writers->owner[of] == i) {
		emit(writers->links[i], bed->sink.names[of], goals[pick(&writers->seed, 6)]);
		writers->owner[of] = i;
		writers->wrote[i] = true;
	}
}

static void check_order(unsigned seed, unsigned refuses)
{
	struct bed bed;
	struct writers writers = {.seed = seed, .owner = {-1, -1, -1}};
	bed_init(&bed, 1 + pick(&writers.seed, 3));
	bed.sink.refuses = refuses;
	for (int i = 0; i < MOVES; i++) {
		write_some(&bed, &writers);
		if (pick(&writers.seed, 6) == 0)
			step(&bed);
		if (pick(&writers.seed, 10) == 0)
			env_virtual_advance(&bed.clock, LATER_US);
		if (pick(&writers.seed, 60) == 0)
			kill_lane(&bed);
	}
	for (int i = 0; i < WRITERS; i++)
		if (writers.links[i])
			end_one(&writers, i);
	assert_all_comes(&bed);
	assert_true(bed.sink.count > 50);
	bed_release(&bed);
}

static void each_aggregate_is_in_order_whatever_the_interleaving(void **state) /* C04 C05 */
{
	(void)state;
	for (unsigned seed = 1; seed <= 6; seed++)
		check_order(seed * 7919, seed & 1 ? 0 : 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_goes_elsewhere_hides_no_predecessor),
	    cmocka_unit_test(what_is_known_of_it_survives_whoever_knew_it),
	    cmocka_unit_test(in_one_transaction_it_hides_none_either),
	    cmocka_unit_test(destination_that_is_back_is_noticed_within_half_a_minute),
	    cmocka_unit_test(who_lost_its_lane_while_a_channel_was_opened_sends_nothing),
	    cmocka_unit_test(each_aggregate_is_in_order_whatever_the_interleaving),
	};
	fixture_start();
	int failed = cmocka_run_group_tests_name("relay lane", tests, NULL, NULL);
	fixture_stop();
	return failed;
}
