/* SPDX-License-Identifier: Apache-2.0 */
/* How the outbox is read on PostgreSQL, where neither ids nor versions come in the order of
 * commits; and how lanes are shared. */
#include "store/archive.h"
#include "store/outbox.h"
#include "store/pg_fixture.h"
#include "store/postgres/postgres.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { AGGREGATES = 5, LEASE_US = 60000000 };

/* ---- A bed: a store, and aggregates that are all in lane 0 ---------------------------------- */

struct bed {
	struct store *store;
	struct arena arena;
	struct lane_lease lease;
	char names[AGGREGATES][16];
};

static PGconn *connect_own(void)
{
	return fixture_connect(fixture_own_url());
}

/* The first cell; NULL is "". */
static char *ask(PGconn *link, struct arena *arena, const char *sql)
{
	PGresult *result = PQexec(link, sql);
	ExecStatusType status = PQresultStatus(result);
	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(link));
	char *cell = arena_strdup(arena, PQntuples(result) ? PQgetvalue(result, 0, 0) : "");
	PQclear(result);
	return cell;
}

static size_t lease_as(struct bed *bed, const char *relay, struct lane_lease **ret, size_t *share)
{
	struct lane_wish wish = {.destination = "d", .relay = relay, .lease_us = LEASE_US};
	struct ibid_err err;
	size_t count = 0;
	if (bed->store->ops->lease_lanes(bed->store, &bed->arena, &wish, ret, &count, share, &err))
		fail_msg("lease: %s", err.text);
	return count;
}

static void name_aggregates(struct bed *bed)
{
	PGconn *link = connect_own();
	PGresult *result = PQexec(link,
	                          "select 'a' || g from generate_series(1, 200) as g "
	                          "where ibid_internal.lane_of('acme', 'order', 'a' || g) = 0 limit 5");
	assert_int_equal(PQntuples(result), AGGREGATES);
	for (int i = 0; i < AGGREGATES; i++)
		snprintf(bed->names[i], sizeof bed->names[i], "%s", PQgetvalue(result, i, 0));
	PQclear(result);
	PQfinish(link);
}

/* The store is used as the role that it is made for. */
static struct bed bed_new(void)
{
	struct bed bed = {.store = NULL};
	struct lane_lease *leases = NULL;
	size_t share = 0;
	store_close(fixture_fresh());
	assert_true(fixture_exec("do $$ begin create role test_relay login; exception when "
	                         "duplicate_object then null; end $$"));
	assert_true(fixture_exec("grant ibid_service to test_relay"));
	bed.store = fixture_store(fixture_url("test_relay", fixture_port(), ""), 8, 1500);
	name_aggregates(&bed);
	assert_int_equal(lease_as(&bed, "bed", &leases, &share), OUTBOX_LANES);
	bed.lease = leases[0];
	assert_int_equal(bed.lease.lane, 0);
	return bed;
}

static void bed_free(struct bed *bed)
{
	store_close(bed->store);
	arena_release(&bed->arena);
}

static struct uuid emit(PGconn *link, const char *aggregate, const char *topic)
{
	char sql[512], id[UUID_TEXT_SIZE];
	struct uuid command = uuid_v7(env_system());
	uuid_write(command, id);
	snprintf(sql, sizeof sql,
	         "select ibid.append_event('acme', '%s', 1, 'order', '%s', 'Told', '{\"n\":1}', null, "
	         "null, null, null, now(), null, null, %s%s%s, null, null)",
	         id, aggregate, topic ? "'" : "", topic ? topic : "null", topic ? "'" : "");
	PGresult *result = PQexec(link, sql);
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		fail_msg("%s", PQerrorMessage(link));
	PQclear(result);
	return uuid_nth(command, 1);
}

static void run(PGconn *link, const char *sql)
{
	struct arena arena = {0};
	(void)ask(link, &arena, sql);
	arena_release(&arena);
}

/* Begin, and get the transaction its id. */
static void begin(PGconn *link)
{
	run(link, "begin");
	run(link, "select pg_current_xact_id()");
}

static struct lane_batch read_lane(struct bed *bed, const char *cursor, size_t limit, bool doubtful)
{
	struct lane_batch batch = {.count = 0};
	struct ibid_err err;
	if (bed->store->ops->read_lane(bed->store, &bed->arena, &bed->lease, cursor, limit, doubtful,
	                               &batch, &err))
		fail_msg("read: %s", err.text);
	return batch;
}

static enum ibid_code settle(struct bed *bed, struct lane_settlement settlement)
{
	struct ibid_err err;
	return bed->store->ops->settle_lane(bed->store, &settlement, &err);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static void an_event_whose_predecessor_is_behind_the_cut_is_early(void **state)
{
	struct bed bed = bed_new();
	PGconn *first = connect_own(), *second = connect_own();
	(void)state;
	begin(first); /* the smaller id, and the later version */
	emit(second, bed.names[0], "t");
	emit(first, bed.names[0], "t");
	run(first, "commit");
	struct lane_batch whole = read_lane(&bed, "", 9, false);
	assert_int_equal(whole.count, 2);
	assert_false(whole.more);
	assert_int_equal(whole.events[0].event.version, 1);
	assert_int_equal(whole.events[1].event.version, 2);
	assert_false(whole.events[0].early || whole.events[1].early);
	struct lane_batch cut = read_lane(&bed, "", 1, false);
	assert_int_equal(cut.count, 1);
	assert_int_equal(cut.events[0].event.version, 2);
	assert_true(cut.events[0].early && cut.more);
	assert_int_equal(cut.events[0].after, 1);
	struct lane_batch rest = read_lane(&bed, cut.cursor, 9, false);
	assert_int_equal(rest.count, 1);
	assert_int_equal(rest.events[0].event.version, 1);
	assert_false(rest.events[0].early || rest.more);
	assert_int_equal(read_lane(&bed, rest.cursor, 9, false).count, 0);
	PQfinish(first);
	PQfinish(second);
	bed_free(&bed);
}

static void an_event_that_goes_nowhere_is_nobodys_predecessor(void **state)
{
	struct bed bed = bed_new();
	PGconn *first = connect_own(), *second = connect_own();
	(void)state;
	begin(first);
	emit(second, bed.names[0], "t");
	emit(second, bed.names[0], NULL);
	emit(first, bed.names[0], "t");
	run(first, "commit");
	struct lane_batch cut = read_lane(&bed, "", 1, false);
	assert_int_equal(cut.events[0].event.version, 3);
	assert_true(cut.events[0].early);
	assert_int_equal(cut.events[0].after, 1);
	PQfinish(first);
	PQfinish(second);
	bed_free(&bed);
}

static void an_open_transaction_neither_loses_nor_stalls_anything(void **state)
{
	struct bed bed = bed_new();
	PGconn *writer = connect_own(), *other = connect_own(), *undone = connect_own();
	PGconn *foreign = fixture_connect(getenv("IBID_TEST_PG"));
	(void)state;
	begin(foreign);
	begin(writer);
	begin(undone);
	emit(writer, bed.names[0], "t");
	emit(undone, bed.names[2], "t");
	emit(other, bed.names[1], "t");
	struct lane_batch batch = read_lane(&bed, "", 9, false);
	assert_int_equal(batch.count, 1);
	assert_string_equal(batch.events[0].event.aggregate_id, bed.names[1]);
	emit(other, bed.names[1], "t");
	batch = read_lane(&bed, batch.cursor, 9, false);
	assert_int_equal(batch.count, 1);
	assert_int_equal(batch.events[0].event.version, 2);
	run(undone, "rollback");
	run(writer, "commit");
	batch = read_lane(&bed, batch.cursor, 9, false);
	assert_int_equal(batch.count, 1);
	assert_string_equal(batch.events[0].event.aggregate_id, bed.names[0]);
	assert_int_equal(read_lane(&bed, batch.cursor, 9, false).count, 0);
	PQfinish(foreign);
	PQfinish(undone);
	PQfinish(other);
	PQfinish(writer);
	bed_free(&bed);
}

static void transactions_that_end_late_are_cut_like_others(void **state)
{
	enum { LATE = 4 };
	struct bed bed = bed_new();
	PGconn *late[LATE], *other = connect_own();
	(void)state;
	for (int i = 0; i < LATE; i++) {
		late[i] = connect_own();
		begin(late[i]);
		emit(late[i], bed.names[i], "t");
	}
	emit(other, bed.names[4], "t");
	struct lane_batch batch = read_lane(&bed, "", 9, false);
	assert_int_equal(batch.count, 1);
	for (int i = 0; i < LATE; i++)
		run(late[i], "commit");
	emit(other, bed.names[4], "t");
	for (int i = 0; i < LATE; i++) {
		batch = read_lane(&bed, batch.cursor, 1, false);
		assert_int_equal(batch.count, 1);
		assert_true(batch.more);
		assert_string_equal(batch.events[0].event.aggregate_id, bed.names[i]);
		PQfinish(late[i]);
	}
	batch = read_lane(&bed, batch.cursor, 9, false);
	assert_int_equal(batch.count, 1);
	assert_int_equal(batch.events[0].event.version, 2);
	PQfinish(other);
	bed_free(&bed);
}

static void a_transaction_is_never_cut(void **state)
{
	struct bed bed = bed_new();
	PGconn *link = fixture_connect(fixture_url("test_relay", fixture_port(), ""));
	(void)state;
	run(link, "begin");
	for (int i = 0; i < 5; i++)
		emit(link, bed.names[i % 2], "t");
	run(link, "commit");
	emit(link, bed.names[0], "t");
	struct lane_batch batch = read_lane(&bed, "", 2, false);
	assert_int_equal(batch.count, 5);
	assert_true(batch.more);
	batch = read_lane(&bed, batch.cursor, 2, false);
	assert_int_equal(batch.count, 1);
	assert_false(batch.more || batch.events[0].early);
	PQfinish(link);
	bed_free(&bed);
}

/* ---- Whatever the order --------------------------------------------------------------------- */

enum { WRITERS = 6, STEPS = 1000, EVENTS_MAX = 2000, VERSIONS_MAX = 2000 };

/* A relay that sends at once, and knows what it must not send yet. */
struct receiver {
	char arrived[AGGREGATES][VERSIONS_MAX]; /* by version */
	int64_t last[AGGREGATES];
	struct {
		bool held;
		int64_t after;
	} waits[AGGREGATES][VERSIONS_MAX];
	size_t count, early;
};

static int aggregate_of(const struct bed *bed, const char *name)
{
	for (int i = 0; i < AGGREGATES; i++)
		if (strcmp(bed->names[i], name) == 0)
			return i;
	fail_msg("%s", name);
	return 0;
}

static void arrive(struct receiver *receiver, int of, int64_t version)
{
	if (version <= receiver->last[of])
		fail_msg("version %d behind %d", (int)version, (int)receiver->last[of]);
	receiver->last[of] = version;
	receiver->arrived[of][version] = 1;
	receiver->waits[of][version].held = false;
}

static int64_t lowest_held(const struct receiver *receiver, int of)
{
	for (int64_t version = 1; version < VERSIONS_MAX; version++)
		if (receiver->waits[of][version].held)
			return version;
	return VERSIONS_MAX;
}

static void receive(struct receiver *receiver, int of, const struct outbox_event *it)
{
	int64_t version = it->event.version;
	assert_true(version < VERSIONS_MAX);
	if (receiver->arrived[of][version] || receiver->waits[of][version].held)
		fail_msg("version %d came twice", (int)version);
	receiver->count++;
	receiver->early += it->early;
	receiver->waits[of][version].held = true;
	receiver->waits[of][version].after = it->early ? it->after : 0;
	for (int64_t next; (next = lowest_held(receiver, of)) < VERSIONS_MAX;) {
		int64_t after = receiver->waits[of][next].after;
		if (after && !receiver->arrived[of][after])
			break;
		arrive(receiver, of, next);
	}
}

static void receive_batch(struct bed *bed, struct receiver *receiver,
                          const struct lane_batch *batch)
{
	int64_t last[AGGREGATES] = {0};
	for (size_t i = 0; i < batch->count; i++) {
		const struct outbox_event *it = &batch->events[i];
		int of = aggregate_of(bed, it->event.aggregate_id);
		assert_true(it->event.version > last[of]);
		last[of] = it->event.version;
		receive(receiver, of, it);
	}
}

struct writers {
	PGconn *links[WRITERS];
	bool open[WRITERS], wrote[WRITERS];
	int owner[AGGREGATES]; /* whose transaction has moved its head; -1: nobody's */
	unsigned seed;
};

static unsigned pick(struct writers *writers, unsigned below)
{
	writers->seed = writers->seed * 1103515245u + 12345u;
	return (writers->seed >> 16) % below;
}

static void end_one(struct writers *writers, int i)
{
	run(writers->links[i], pick(writers, 5) ? "commit" : "rollback");
	writers->open[i] = writers->wrote[i] = false;
	for (int of = 0; of < AGGREGATES; of++)
		if (writers->owner[of] == i)
			writers->owner[of] = -1;
}

static void step(struct bed *bed, struct writers *writers)
{
	int i = (int)pick(writers, WRITERS), of = (int)pick(writers, AGGREGATES);
	if (!writers->open[i]) {
		begin(writers->links[i]);
		writers->open[i] = true;
	} else if (writers->wrote[i] && pick(writers, 2)) {
		end_one(writers, i);
	} else if (writers->owner[of] == -1 || writers->owner[of] == i) {
		emit(writers->links[i], bed->names[of], pick(writers, 6) ? "t" : NULL);
		writers->owner[of] = i;
		writers->wrote[i] = true;
	}
}

/* How many came before their predecessors. */
static size_t check_order(unsigned seed)
{
	struct bed bed = bed_new();
	struct writers writers = {.seed = seed};
	struct receiver *receiver = calloc(1, sizeof *receiver);
	const char *cursor = "";
	for (int i = 0; i < WRITERS; i++)
		writers.links[i] = connect_own();
	for (int of = 0; of < AGGREGATES; of++)
		writers.owner[of] = -1;
	for (int i = 0; i < STEPS; i++) {
		step(&bed, &writers);
		if (pick(&writers, 8))
			continue;
		struct lane_batch batch = read_lane(&bed, cursor, 1 + pick(&writers, 3), false);
		receive_batch(&bed, receiver, &batch);
		cursor = batch.cursor;
	}
	for (int i = 0; i < WRITERS; i++) {
		if (writers.open[i])
			end_one(&writers, i);
		PQfinish(writers.links[i]);
	}
	for (bool more = true; more;) {
		struct lane_batch batch = read_lane(&bed, cursor, 1 + pick(&writers, 3), false);
		receive_batch(&bed, receiver, &batch);
		cursor = batch.cursor;
		more = batch.more;
	}
	assert_int_equal(receiver->count,
	                 fixture_number("select count(*) from ibid.event where topic is not null"));
	for (int of = 0; of < AGGREGATES; of++)
		assert_int_equal(lowest_held(receiver, of), VERSIONS_MAX);
	assert_true(receiver->count > 100);
	size_t early = receiver->early;
	free(receiver);
	bed_free(&bed);
	return early;
}

static void each_committed_event_comes_once_and_in_order_whatever_the_interleaving(void **state)
{
	size_t early = 0;
	(void)state;
	for (unsigned seed = 1; seed <= 4; seed++)
		early += check_order(seed * 7919);
	print_message("%zu were early\n", early);
	assert_true(early >= 20);
}

/* ---- Cost ----------------------------------------------------------------------------------- */

/* Of transactions that are over, each with evidence. */
static void deliver_many(PGconn *link, int from, int count)
{
	char sql[1024];
	snprintf(sql, sizeof sql,
	         "with each as (select g, overlay(ibid_internal.first_id(now())::text placing "
	         "lpad(to_hex(g), 12, '0') from 25)::uuid as id from generate_series(%d, %d) as g), "
	         "evidence as (insert into ibid.delivery (tenant, event_id, destination, token, at, "
	         "place) select 'acme', id, 'd', 1, now(), 'p' from each) "
	         "insert into ibid.event (id, aggregatetype, aggregateid, type, payload, tenant, "
	         "version, key, command_id, ordinal, partition_key, created_at, topic, lane, xid) "
	         "select id, 'order', 'x' || g, 'T', '{}', 'acme', 1, id::text, id, 1, 'p', now(), "
	         "'t', 0, (3 + g %% 700)::text::xid8 from each",
	         from, from + count - 1);
	run(link, sql);
}

static long buffers_of(struct bed *bed, PGconn *link, const char *cursor)
{
	char *sql = arena_printf(&bed->arena,
	                         "explain (analyze, buffers, timing off) "
	                         "execute lane_read(0, 'd', '%s', 100, false)",
	                         cursor);
	long buffers = -1;
	PGresult *result = PQexec(link, sql);
	for (int row = 0; row < PQntuples(result); row++) {
		const char *line = PQgetvalue(result, row, 0), *hit = strstr(line, "shared hit=");
		if (strstr(line, "Seq Scan") || strstr(line, "Bitmap"))
			fail_msg("%s", line);
		if (hit && buffers < 0) {
			const char *miss = strstr(line, "read=");
			buffers = atol(hit + 11) + (miss ? atol(miss + 5) : 0);
		}
	}
	PQclear(result);
	if (buffers < 0)
		fail_msg("%s", PQerrorMessage(link));
	return buffers;
}

/* A cursor names all transactions of the server that are open, and each is looked up when it has
 * ended. Those of other databases wrote nothing here: as if they had ended before. */
static char *naming_only(struct bed *bed, const char *cursor, const char *xid, const char *next)
{
	const char *named = strrchr(cursor, ':') + 1;
	assert_non_null(strstr(named, xid));
	assert_non_null(strstr(named, next));
	assert_null(strchr(named, ';'));
	return arena_printf(&bed->arena, "%.*s%s,%s", (int)(named - cursor), cursor, xid, next);
}

static void what_reading_costs_does_not_grow_with_what_was_delivered(void **state)
{
	struct bed bed = bed_new();
	PGconn *link = connect_own(), *own = connect_own();
	PGconn *foreign = fixture_connect(getenv("IBID_TEST_PG"));
	long before = 0;
	(void)state;
	run(link, pg_statements[STATEMENT_LANE_PLAN].sql);
	run(link, "set enable_seqscan = off");
	run(link, "set enable_bitmapscan = off");
	run(link, "set plan_cache_mode = force_generic_plan");
	PQclear(PQprepare(link, "lane_read", pg_statements[STATEMENT_LANE_READ].sql, 0, NULL));
	begin(own);
	begin(foreign);
	const char *xid = ask(own, &bed.arena, "select pg_current_xact_id()");
	const char *next = ask(foreign, &bed.arena, "select pg_current_xact_id()");
	emit(own, bed.names[0], "t");
	for (int round = 0; round < 2; round++) {
		deliver_many(link, round ? 5001 : 1, round ? 45000 : 5000);
		struct lane_batch behind = read_lane(&bed, "", 100000, true);
		assert_int_equal(behind.count, 0);
		assert_false(behind.more);
		const char *cursor = naming_only(&bed, behind.cursor, xid, next);
		for (int i = 0; i < 10; i++)
			emit(link, bed.names[1 + i % 4], "t");
		assert_int_equal(read_lane(&bed, cursor, 100, false).count, 10);
		(void)buffers_of(&bed, link, cursor); /* what only the first one sets, it has set */
		long now = buffers_of(&bed, link, cursor);
		if (round && now > before + 12) /* an index may have a level more */
			fail_msg("%ld buffers, and %ld before", now, before);
		before = now;
		run(link, "begin");
		run(link, "insert into ibid.delivery (tenant, event_id, destination, token, at, place) "
		          "select tenant, id, 'd', 1, now(), 'p' from ibid.event where id not in "
		          "(select event_id from ibid.delivery)");
		run(link, "commit");
	}
	PQfinish(foreign);
	PQfinish(own);
	PQfinish(link);
	bed_free(&bed);
}

/* ---- Doubt ---------------------------------------------------------------------------------- */

static struct delivery_row delivery_of(struct uuid id)
{
	return (struct delivery_row){
	    .tenant = "acme",
	    .event_id = id,
	    .place = "t",
	    .partition = 3,
	    .offset = 17,
	    .at_us = env_wall_us(env_system()),
	};
}

static void what_has_evidence_is_left_out_where_there_is_doubt(void **state)
{
	struct bed bed = bed_new();
	struct lane_batch batch;
	PGconn *link = connect_own();
	(void)state;
	struct delivery_row arrived = delivery_of(emit(link, bed.names[0], "t"));
	emit(link, bed.names[0], "t");
	assert_int_equal(settle(&bed, (struct lane_settlement){.lease = &bed.lease,
	                                                       .deliveries = &arrived,
	                                                       .delivery_count = 1}),
	                 IBID_OK);
	assert_int_equal(read_lane(&bed, "", 9, false).count, 2);
	batch = read_lane(&bed, "", 9, true);
	assert_int_equal(batch.count, 1);
	assert_int_equal(batch.events[0].event.version, 2);
	/* All that was looked at had evidence. */
	batch = read_lane(&bed, "", 1, true);
	assert_int_equal(batch.count, 0);
	assert_true(batch.more);
	assert_int_equal(read_lane(&bed, batch.cursor, 9, true).count, 1);
	/* A cursor of another server says nothing. */
	batch = read_lane(&bed, "17;900000000:900000000:", 9, false);
	assert_int_equal(batch.count, 1);
	assert_int_equal(read_lane(&bed, batch.cursor, 9, false).count, 0);
	PQfinish(link);
	bed_free(&bed);
}

/* ---- Restored ------------------------------------------------------------------------------- */

/* As after a restore on a server that has given fewer ids: it has yet to give theirs. */
static void restore(PGconn *link)
{
	run(link, "set session_replication_role = replica");
	run(link, "update ibid.event set xid = (xid::text::bigint + 20000)::text::xid8, "
	          "follows = (follows::text::bigint + 20000)::text::xid8");
	run(link, "update ibid.aggregate set xid = (xid::text::bigint + 20000)::text::xid8, "
	          "before = (before::text::bigint + 20000)::text::xid8");
	run(link, "reset session_replication_role");
}

/* Has this server given all ids that were restored, and are their transactions over by its word?
 * Others on it take some, too. */
static bool ids_are_given(void)
{
	return fixture_number("select (max(e.xid) < pg_snapshot_xmin(pg_current_snapshot()))::int from "
	                      "ibid.event as e");
}

/* No more than that: whoever has a transaction open on this server is waited for. */
static void give_ids(PGconn *link)
{
	while (!ids_are_given())
		run(link, "do $$ declare last xid8 := (select max(e.xid) from ibid.event as e); begin "
		          "while last >= pg_snapshot_xmax(pg_current_snapshot()) loop "
		          "perform pg_current_xact_id(); commit; end loop; end $$");
}

/* What is read until there is no more, each with evidence afterwards unless it is early:
 * "aggregate:version ", with a "!" where it is early. */
static char *drain(struct bed *bed, const char **cursor, size_t limit)
{
	char *said = arena_strdup(&bed->arena, "");
	struct lane_batch batch;
	do {
		batch = read_lane(bed, *cursor, limit, false);
		*cursor = batch.cursor;
		for (size_t i = 0; i < batch.count; i++) {
			const struct event_row *event = &batch.events[i].event;
			int aggregate = 0;
			while (strcmp(bed->names[aggregate], event->aggregate_id) != 0)
				aggregate++;
			struct delivery_row arrived = delivery_of(event->id);
			struct lane_settlement settlement = {.lease = &bed->lease,
			                                     .deliveries = &arrived,
			                                     .delivery_count = !batch.events[i].early};
			assert_int_equal(settle(bed, settlement), IBID_OK);
			said = arena_printf(&bed->arena, "%s%d:%d%s ", said, aggregate, (int)event->version,
			                    batch.events[i].early ? "!" : "");
		}
	} while (batch.more);
	return said;
}

static void restored_events_come_once_and_in_order_among_new_ones(void **state)
{
	struct bed bed = bed_new();
	PGconn *link = connect_own(), *ids = fixture_own_ids();
	const char *cursor = "17;900000000:900000000:";
	(void)state;
	struct delivery_row arrived = delivery_of(emit(link, bed.names[0], "t"));
	assert_int_equal(settle(&bed, (struct lane_settlement){.lease = &bed.lease,
	                                                       .deliveries = &arrived,
	                                                       .delivery_count = 1}),
	                 IBID_OK);
	emit(link, bed.names[0], "t");
	emit(link, bed.names[1], "t");
	restore(link);
	emit(link, bed.names[0], "t"); /* a smaller id than those before it */
	emit(link, bed.names[2], "t");
	assert_string_equal(drain(&bed, &cursor, 1), "0:3! 2:1 0:2 1:1 ");
	/* What they come behind was restored. */
	emit(link, bed.names[1], "t");
	emit(link, bed.names[2], "t");
	assert_string_equal(drain(&bed, &cursor, 9), "1:2 2:2 ");
	assert_string_equal(drain(&bed, &cursor, 1), "");
	bool confused = strchr(strchr(cursor, ';') + 1, ';');
	assert_true(confused || ids_are_given());
	give_ids(link);
	emit(link, bed.names[1], "t");
	assert_string_equal(drain(&bed, &cursor, 1), "1:3 ");
	assert_null(strchr(strchr(cursor, ';') + 1, ';')); /* nothing is confused any more */
	PQfinish(link);
	PQfinish(ids);
	bed_free(&bed);
}

/* While what was restored is read somebody commits whose id was passed already. */
static void who_follows_a_late_one_among_the_restored_waits_for_it(void **state)
{
	struct bed bed = bed_new();
	PGconn *late = connect_own(), *link = connect_own(), *ids = fixture_own_ids();
	const char *cursor = "17;900000000:900000000:";
	(void)state;
	emit(link, bed.names[0], "t");
	emit(link, bed.names[2], "t");
	restore(link);
	begin(late);
	emit(link, bed.names[3], "t");
	struct lane_batch first = read_lane(&bed, cursor, 1, false);
	assert_int_equal(first.count, 1);
	assert_string_equal(first.events[0].event.aggregate_id, bed.names[3]);
	emit(late, bed.names[1], "t");
	run(late, "commit");
	run(link, "set session_replication_role = replica");
	run(link, "update ibid.event set headers = '{\"deliver_to\":\"d\"}'");
	run(link, "reset session_replication_role");
	emit(link, bed.names[1], "t");
	cursor = first.cursor;
	struct delivery_row arrived = delivery_of(first.events[0].event.id);
	assert_int_equal(settle(&bed, (struct lane_settlement){.lease = &bed.lease,
	                                                       .deliveries = &arrived,
	                                                       .delivery_count = 1}),
	                 IBID_OK);
	assert_string_equal(drain(&bed, &cursor, 1), "1:2! 0:1 2:1 1:1 1:2 ");
	PQfinish(link);
	PQfinish(late);
	PQfinish(ids);
	bed_free(&bed);
}

/* ---- Leases --------------------------------------------------------------------------------- */

static void give_up(struct bed *bed, const struct lane_lease *lease)
{
	assert_int_equal(settle(bed, (struct lane_settlement){.lease = lease, .lease_us = -1}),
	                 IBID_OK);
}

static void relays_share_lanes_and_take_over_those_of_one_that_is_gone(void **state)
{
	struct bed bed = bed_new();
	struct lane_lease *first = NULL, *second = NULL, *third = NULL;
	size_t share = 0;
	(void)state;
	assert_true(fixture_exec("delete from ibid.relay_lane; delete from ibid.relay"));
	assert_int_equal(lease_as(&bed, "one", &first, &share), OUTBOX_LANES);
	assert_int_equal(share, OUTBOX_LANES);
	assert_int_equal(lease_as(&bed, "one", &second, &share), 0);
	assert_int_equal(lease_as(&bed, "two", &second, &share), 0);
	assert_int_equal(share, OUTBOX_LANES / 2);
	for (int lane = OUTBOX_LANES / 2; lane < OUTBOX_LANES; lane++)
		give_up(&bed, &first[lane]);
	assert_int_equal(lease_as(&bed, "one", &third, &share), 0);
	assert_int_equal(share, OUTBOX_LANES / 2);
	assert_int_equal(lease_as(&bed, "two", &second, &share), OUTBOX_LANES / 2);
	assert_int_equal(second[0].lane, OUTBOX_LANES / 2);
	assert_int_equal(second[0].token, 2);
	/* Its leases are over: it may go on where nobody took the lane. */
	static const char gone[] = "update ibid.relay_lane set lease_until = clock_timestamp() where "
	                           "relay = 'one'; update ibid.relay set seen_at = seen_at - interval "
	                           "'2 minutes' where relay = 'one'";
	assert_true(fixture_exec(gone));
	assert_int_equal(
	    settle(&bed,
	           (struct lane_settlement){.lease = &first[0], .cursor = "c", .lease_us = LEASE_US}),
	    IBID_OK);
	assert_int_equal(lease_as(&bed, "two", &third, &share), OUTBOX_LANES / 2 - 1);
	assert_int_equal(share, OUTBOX_LANES);
	assert_true(fixture_exec(gone));
	assert_int_equal(lease_as(&bed, "two", &third, &share), 1);
	assert_int_equal(third[0].lane, 0);
	assert_int_equal(third[0].token, 2);
	/* Who was not seen for long is forgotten. */
	assert_true(fixture_exec("update ibid.relay set seen_at = seen_at - interval '1 hour' where "
	                         "relay = 'one'"));
	assert_int_equal(lease_as(&bed, "two", &third, &share), 0);
	assert_int_equal(fixture_number("select count(*) from ibid.relay"), 1);
	bed_free(&bed);
}

static void a_lane_that_is_settled_right_now_is_not_taken(void **state)
{
	struct bed bed = bed_new();
	struct lane_lease *leases = NULL;
	size_t share = 0;
	PGconn *settles = connect_own();
	(void)state;
	assert_true(fixture_exec("update ibid.relay_lane set lease_until = clock_timestamp(); update "
	                         "ibid.relay set seen_at = seen_at - interval '2 minutes'"));
	run(settles, "begin");
	run(settles, "select ibid_internal.keep_lane('d', 0, 1, null, 0, 0)");
	assert_int_equal(lease_as(&bed, "two", &leases, &share), OUTBOX_LANES - 1);
	assert_int_equal(leases[0].lane, 1);
	run(settles, "commit");
	assert_int_equal(lease_as(&bed, "two", &leases, &share), 1);
	PQfinish(settles);
	bed_free(&bed);
}

/* ---- Settling ------------------------------------------------------------------------------- */

static struct hold_row hold_of(const struct bed *bed, struct uuid id, int64_t version,
                               enum hold_state state)
{
	struct hold_row row = {
	    .tenant = "acme",
	    .event_id = id,
	    .aggregate_type = "order",
	    .aggregate_id = bed->names[0],
	    .version = version,
	    .state = state,
	    .since_us = 1000000,
	};
	if (state != HOLD_WAITS) {
		row.attempts = 2;
		row.failure = FAILURE_CAPACITY;
		row.reason = "TOO_MANY";
		row.why = "it said \"429\", and {a,\\b}";
		row.next_us = 5000000;
	}
	return row;
}

static struct exception_row exception_of(const char *subject)
{
	return (struct exception_row){
	    .tenant = "acme",
	    .id = uuid_v7(env_system()),
	    .queue = QUEUE_DEAD_LETTER,
	    .severity = SEVERITY_HIGH,
	    .subject_type = "event",
	    .subject_id = subject,
	    .reason = "TOO_MANY",
	    .owner = "integration",
	    .actions = "",
	    .opened_us = 1,
	};
}

static void a_settlement_keeps_evidence_holds_exceptions_and_the_cursor(void **state)
{
	struct bed bed = bed_new();
	struct ibid_err err;
	struct held_event *held = NULL;
	struct delivery_row *deliveries = NULL;
	struct lane_row *lanes = NULL;
	struct lane_lease *leases = NULL;
	size_t count = 0, share;
	PGconn *link = connect_own();
	(void)state;
	struct uuid first = emit(link, bed.names[0], "t"), second = emit(link, bed.names[0], "t");
	struct hold_row holds[] = {hold_of(&bed, first, 1, HOLD_FAILED),
	                           hold_of(&bed, second, 2, HOLD_WAITS)};
	struct exception_row exceptions[] = {exception_of("e1"), exception_of("e1")};
	assert_int_equal(settle(&bed, (struct lane_settlement){.lease = &bed.lease,
	                                                       .holds = holds,
	                                                       .hold_count = 2,
	                                                       .exceptions = exceptions,
	                                                       .exception_count = 2}),
	                 IBID_OK);
	assert_int_equal(fixture_number("select count(*) from ibid.exception"), 1);
	assert_int_equal(
	    bed.store->ops->list_held(bed.store, &bed.arena, &bed.lease, &held, &count, &err), IBID_OK);
	assert_int_equal(count, 2);
	assert_string_equal(held[0].event.payload, "{\"n\":1}");
	assert_int_equal(held[0].hold.state, HOLD_FAILED);
	assert_int_equal(held[0].hold.failure, FAILURE_CAPACITY);
	assert_string_equal(held[0].hold.why, holds[0].why);
	assert_int_equal(held[0].hold.next_us, 5000000);
	assert_int_equal(held[1].hold.version, 2);
	assert_null(held[1].hold.reason);
	assert_false(held[0].early || held[1].early);
	struct delivery_row arrived = delivery_of(first);
	arrived.was_held = true;
	holds[1] = hold_of(&bed, second, 2, HOLD_PARKED);
	holds[1].held = true;
	holds[1].was = HOLD_WAITS;
	assert_int_equal(settle(&bed, (struct lane_settlement){.lease = &bed.lease,
	                                                       .cursor = "here",
	                                                       .uncounted = 4,
	                                                       .deliveries = &arrived,
	                                                       .delivery_count = 1,
	                                                       .holds = holds + 1,
	                                                       .hold_count = 1}),
	                 IBID_OK);
	assert_int_equal(
	    bed.store->ops->list_held(bed.store, &bed.arena, &bed.lease, &held, &count, &err), IBID_OK);
	assert_int_equal(count, 1);
	assert_int_equal(held[0].hold.state, HOLD_PARKED);
	assert_int_equal(held[0].hold.since_us, 1000000);
	assert_int_equal(
	    store_list_deliveries(bed.store, &bed.arena, "acme", &first, &deliveries, &count, &err),
	    IBID_OK);
	assert_int_equal(count, 1);
	assert_string_equal(deliveries[0].destination, "d");
	assert_int_equal(deliveries[0].token, 1);
	assert_int_equal(deliveries[0].partition, 3);
	assert_int_equal(deliveries[0].offset, 17);
	assert_int_equal(deliveries[0].at_us, arrived.at_us);
	assert_int_equal(store_list_lanes(bed.store, &bed.arena, &lanes, &count, &err), IBID_OK);
	assert_int_equal(count, OUTBOX_LANES);
	assert_int_equal(lanes[0].delivered, 5);
	assert_string_equal(lanes[0].relay, "bed");
	assert_true(lanes[0].moved_us > 0 && lanes[1].moved_us == 0);
	give_up(&bed, &bed.lease);
	assert_int_equal(lease_as(&bed, "bed", &leases, &share), 1);
	assert_string_equal(leases[0].cursor, "here");
	PQfinish(link);
	bed_free(&bed);
}

static void an_early_event_in_the_hold_is_known_until_its_predecessor_came(void **state)
{
	struct bed bed = bed_new();
	struct ibid_err err;
	struct held_event *held = NULL;
	size_t count = 0;
	PGconn *link = connect_own();
	(void)state;
	struct uuid first = emit(link, bed.names[0], "t"), second = emit(link, bed.names[0], "t");
	struct hold_row hold = hold_of(&bed, second, 2, HOLD_WAITS);
	struct delivery_row arrived = delivery_of(first);
	assert_int_equal(
	    settle(&bed,
	           (struct lane_settlement){.lease = &bed.lease, .holds = &hold, .hold_count = 1}),
	    IBID_OK);
	assert_int_equal(
	    bed.store->ops->list_held(bed.store, &bed.arena, &bed.lease, &held, &count, &err), IBID_OK);
	assert_true(held[0].early);
	assert_int_equal(held[0].after, 1);
	assert_int_equal(settle(&bed, (struct lane_settlement){.lease = &bed.lease,
	                                                       .deliveries = &arrived,
	                                                       .delivery_count = 1}),
	                 IBID_OK);
	assert_int_equal(
	    bed.store->ops->list_held(bed.store, &bed.arena, &bed.lease, &held, &count, &err), IBID_OK);
	assert_int_equal(count, 1);
	assert_false(held[0].early);
	PQfinish(link);
	bed_free(&bed);
}

static void who_lost_the_lane_writes_nothing(void **state)
{
	struct bed bed = bed_new();
	struct lane_lease *leases = NULL;
	size_t share = 0;
	PGconn *link = connect_own();
	(void)state;
	struct uuid id = emit(link, bed.names[0], "t");
	struct delivery_row arrived = delivery_of(id);
	struct hold_row hold = hold_of(&bed, id, 1, HOLD_FAILED);
	struct exception_row exception = exception_of("e1");
	struct lane_settlement settlement = {
	    .lease = &bed.lease,
	    .deliveries = &arrived,
	    .delivery_count = 1,
	    .holds = &hold,
	    .hold_count = 1,
	    .exceptions = &exception,
	    .exception_count = 1,
	};
	assert_true(fixture_exec("update ibid.relay_lane set lease_until = clock_timestamp(); update "
	                         "ibid.relay set seen_at = seen_at - interval '2 minutes'"));
	assert_int_equal(lease_as(&bed, "two", &leases, &share), OUTBOX_LANES);
	assert_int_equal(settle(&bed, settlement), IBID_FENCED);
	settlement.cursor = "mine";
	settlement.lease_us = LEASE_US;
	assert_int_equal(settle(&bed, settlement), IBID_FENCED);
	settlement.lease_us = -1;
	assert_int_equal(settle(&bed, settlement), IBID_FENCED);
	/* Nor does one who gave it up. */
	give_up(&bed, &leases[0]);
	settlement.lease = &leases[0];
	settlement.lease_us = 0;
	assert_int_equal(settle(&bed, settlement), IBID_FENCED);
	assert_int_equal(fixture_number("select (select count(*) from ibid.delivery) + (select "
	                                "count(*) from ibid.delivery_hold) + (select count(*) from "
	                                "ibid.exception) + (select count(*) from ibid.relay_lane where "
	                                "cursor <> '' or delivered <> 0)"),
	                 0);
	PQfinish(link);
	bed_free(&bed);
}

static void thousands_are_settled_at_once_and_said_twice_are_kept_once(void **state)
{
	enum { MANY = 5000 };
	struct bed bed = bed_new();
	struct delivery_row *rows = calloc(MANY, sizeof *rows);
	(void)state;
	for (int i = 0; i < MANY; i++)
		rows[i] = delivery_of(uuid_v7(env_system()));
	struct lane_settlement settlement = {
	    .lease = &bed.lease, .deliveries = rows, .delivery_count = MANY};
	assert_int_equal(settle(&bed, settlement), IBID_OK);
	assert_int_equal(settle(&bed, settlement), IBID_OK);
	assert_int_equal(fixture_number("select count(*) from ibid.delivery"), MANY);
	free(rows);
	bed_free(&bed);
}

/* ---- Retention ------------------------------------------------------------------------------ */

static enum ibid_code count_line(void *user, const struct archive_line *line, struct ibid_err *err)
{
	(void)err;
	assert_true(line->text[0] == '{' && strlen(line->text) == line->size);
	++*(int64_t *)user;
	return IBID_OK;
}

/* The first month that is old: January 2020. */
static struct archive_span first_span(struct bed *bed)
{
	struct ibid_err err;
	struct archive_span span;
	int64_t now_us = env_wall_us(env_system());
	assert_int_equal(
	    bed->store->ops->next_span(bed->store, &bed->arena, now_us, now_us, NULL, &span, &err),
	    IBID_OK);
	return span;
}

static void evidence_goes_with_its_month_and_a_held_event_keeps_it(void **state) /* C12 */
{
	struct ibid_err err;
	struct archive_seal seal;
	int64_t lines = 0;
	struct bed bed = bed_new();
	(void)state;
	store_close(bed.store); /* the owner of the tables drops them */
	bed.store = fixture_store(fixture_own_url(), 8, 1500);
	assert_true(fixture_exec(
	    "create table ibid.event_202001 partition of ibid.event for values from "
	    "(ibid_internal.first_id('2020-01-01 00:00+00')) to (ibid_internal.first_id('2020-02-01 "
	    "00:00+00'));"
	    "create table ibid.delivery_202001 partition of ibid.delivery for values from "
	    "(ibid_internal.first_id('2020-01-01 00:00+00')) to (ibid_internal.first_id('2020-02-01 "
	    "00:00+00'));"
	    "insert into ibid.event (id, aggregatetype, aggregateid, type, payload, tenant, version, "
	    "key, command_id, ordinal, partition_key, created_at) select "
	    "ibid_internal.first_id('2020-01-02 00:00+00'), 'order', 'x', 'T', '{}', 'acme', 1, 'k', "
	    "gen_random_uuid(), 1, 'p', '2020-01-02';"
	    "insert into ibid.delivery (tenant, event_id, destination, token, at, place) select "
	    "'acme', ibid_internal.first_id('2020-01-02 00:00+00'), 'd', 1, now(), 'p';"
	    "insert into ibid.delivery_hold (destination, tenant, event_id, lane, aggregatetype, "
	    "aggregateid, version, state, attempts, since) select 'e', 'acme', "
	    "ibid_internal.first_id('2020-01-02 00:00+00'), 0, 'order', 'x', 1, 'PARKED', 1, now()"));
	struct archive_span span = first_span(&bed);
	assert_true(span.held && span.undone_count == 1);
	assert_string_equal(span.undone[0].state, "PARKED");
	assert_string_equal(span.name, "20200101-20200201");
	assert_true(fixture_exec("update ibid.delivery_hold set state = 'SKIPPED'"));
	span = first_span(&bed);
	assert_true(!span.held && span.events == 1);
	const struct store_ops *ops = bed.store->ops;
	assert_int_equal(ops->read_span(bed.store, &span, count_line, &lines, &seal, &err), IBID_OK);
	assert_int_equal(lines, 1);
	/* What has changed since it was read is not dropped. */
	assert_true(fixture_exec("insert into ibid.delivery (tenant, event_id, destination, token, at, "
	                         "place) select tenant, event_id, 'late', 1, now(), 'p' from "
	                         "ibid.delivery"));
	assert_int_equal(ops->drop_span(bed.store, &span, &seal, NULL, &err), IBID_RETRY);
	assert_int_equal(fixture_number("select count(*) from ibid.event"), 1);
	assert_int_equal(ops->read_span(bed.store, &span, count_line, &lines, &seal, &err), IBID_OK);
	assert_int_equal(ops->drop_span(bed.store, &span, &seal, NULL, &err), IBID_OK);
	assert_int_equal(fixture_number("select (to_regclass('ibid.event_202001') is null)::int"), 1);
	assert_int_equal(
	    fixture_number("select (select count(*) from ibid.delivery) + (select count(*) "
	                   "from ibid.delivery_hold)"),
	    0);
	assert_string_equal(first_span(&bed).part, "");
	bed_free(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_event_whose_predecessor_is_behind_the_cut_is_early),
	    cmocka_unit_test(an_event_that_goes_nowhere_is_nobodys_predecessor),
	    cmocka_unit_test(an_open_transaction_neither_loses_nor_stalls_anything),
	    cmocka_unit_test(transactions_that_end_late_are_cut_like_others),
	    cmocka_unit_test(a_transaction_is_never_cut),
	    cmocka_unit_test(each_committed_event_comes_once_and_in_order_whatever_the_interleaving),
	    cmocka_unit_test(what_reading_costs_does_not_grow_with_what_was_delivered),
	    cmocka_unit_test(what_has_evidence_is_left_out_where_there_is_doubt),
	    cmocka_unit_test(restored_events_come_once_and_in_order_among_new_ones),
	    cmocka_unit_test(who_follows_a_late_one_among_the_restored_waits_for_it),
	    cmocka_unit_test(relays_share_lanes_and_take_over_those_of_one_that_is_gone),
	    cmocka_unit_test(a_lane_that_is_settled_right_now_is_not_taken),
	    cmocka_unit_test(a_settlement_keeps_evidence_holds_exceptions_and_the_cursor),
	    cmocka_unit_test(an_early_event_in_the_hold_is_known_until_its_predecessor_came),
	    cmocka_unit_test(who_lost_the_lane_writes_nothing),
	    cmocka_unit_test(thousands_are_settled_at_once_and_said_twice_are_kept_once),
	    cmocka_unit_test(evidence_goes_with_its_month_and_a_held_event_keeps_it),
	};
	fixture_start();
	int failed = cmocka_run_group_tests_name("postgres outbox", tests, NULL, NULL);
	fixture_stop();
	return failed;
}
