/* SPDX-License-Identifier: Apache-2.0 */
/* test_group.c -- commands that share a transaction, from many threads.
 *
 * A batch is made on purpose: the first command of a lane is stopped at its first verb until the
 * others wait behind it. */
#include "support/bed.h"
#include "support/fault.h"
#include "support/looks.h"

#include "command/group.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIXTURE IBID_SOURCE_DIR "/test/flow/group"

static struct bed bed;

static int set_up(void **state)
{
	(void)state;
	bed_open(&bed, FIXTURE);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	bed_close(&bed);
	return 0;
}

static int64_t rows(const char *table)
{
	return bed_number(&bed, "select count(*) from %s", table);
}

/* Every accepted command has one entry, one audit entry, one event, and its amount is in. */
static void assert_effects(int64_t count)
{
	assert_int_equal(rows("entry"), count);
	assert_int_equal(rows("ibid.audit"), count);
	assert_int_equal(rows("ibid.event"), count);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.command where state = 'COMPLETED' "
	                                  "and linked = (1 = 0)"),
	                 count);
	assert_int_equal(bed_number(&bed, "select sum(n) from hot"),
	                 bed_number(&bed, "select coalesce(sum(amount), 0) from entry"));
}

/* ---- A stage -------------------------------------------------------------------------------- */

struct stage {
	struct ibid *ibid;
	_Atomic size_t wanted; /* wait behind the first command before it goes on */
	_Atomic bool opened;   /* looks count from here on */
	_Atomic bool held;
	_Atomic int groups, singles;
	_Atomic int running, most; /* groups: now, and at the same time */
	_Atomic int lost;          /* groups that ended in an error */
	_Atomic int busy; /* of these, because PostgreSQL has them wait for a tenth of a second only */
	void (*at_group)(struct stage *, int number); /* before each group; may be NULL */
	struct fault fault;                           /* acts where its `at` says; 0: nowhere */
};

static void on_look(void *user, enum look look, bool after, enum ibid_code code)
{
	struct stage *stage = user;
	if (look == LOOK_GROUP) {
		int step = after ? -1 : 1, running = atomic_fetch_add(&stage->running, step) + step;
		if (running > stage->most)
			stage->most = running;
	}
	if (after && look == LOOK_GROUP && code) {
		stage->lost++;
		stage->busy += code == IBID_BUSY && bed.kind == BED_POSTGRES;
	}
	if (after || !stage->opened)
		return;
	if (look == LOOK_GROUP) {
		int number = ++stage->groups;
		if (stage->at_group)
			stage->at_group(stage, number);
	} else {
		stage->singles++;
		if (atomic_exchange(&stage->held, true))
			return;
		while (group_waiting(stage->ibid->ledger->group) < stage->wanted)
			sched_yield();
	}
}

static struct store *wrap(void *user, struct store *store)
{
	struct stage *stage = user;
	return looks_wrap(fault_set(&stage->fault, store), on_look, stage);
}

static void stage_open_at(struct stage *stage, const char *url, unsigned queue)
{
	struct api_seams seams = {.wrap = wrap, .user = stage};
	struct ibid_err err = {0};
	if (api_open(IBID_OPTIONS(.store = url, .contracts = bed.contracts, .queue = queue), &seams,
	             &stage->ibid, &err))
		fail_msg("open: %s", err.text);
	stage->opened = true;
}

/* The store with a parameter of its URL that PostgreSQL's has. */
static void stage_open_by(struct stage *stage, const char *parameter, unsigned queue)
{
	char url[sizeof bed.url + 32];
	bool has = bed.kind == BED_POSTGRES;
	snprintf(url, sizeof url, "%s%s%s", bed.url,
	         !has                   ? ""
	         : strchr(bed.url, '?') ? "&"
	                                : "?",
	         has ? parameter : "");
	stage_open_at(stage, url, queue);
}

/* Whatever machine this is. */
static void stage_open_with(struct stage *stage, unsigned queue)
{
	stage_open_by(stage, "lanes=2", queue);
}

static void stage_open(struct stage *stage)
{
	stage_open_with(stage, 0);
}

/* ---- Callers -------------------------------------------------------------------------------- */

struct caller {
	pthread_t thread;
	struct stage *stage;
	const char *tenant, *operation;
	char key[48], payload[160];
	const char *traceparent, *tracestate; /* NULL: none */
	char said[64], reason[64];
	enum ibid_code code;
	struct ibid_err err;
	int report; /* a descriptor to which the key goes when it is answered; 0: none */
};

static void *call(void *user)
{
	struct caller *caller = user;
	struct ibid_result *result = NULL;
	caller->code = ibid_submit(
	    caller->stage->ibid,
	    IBID_COMMAND(.tenant = caller->tenant, .client = "c", .operation = caller->operation,
	                 .key = caller->key, .payload = caller->payload,
	                 .traceparent = caller->traceparent, .tracestate = caller->tracestate),
	    &result, &caller->err);
	if (caller->code)
		return NULL;
	snprintf(caller->said, sizeof caller->said, "%s", bed_say(result));
	const char *reason = ibid_result_reason(result);
	snprintf(caller->reason, sizeof caller->reason, "%s", reason ? reason : "");
	ibid_result_free(result);
	if (caller->report)
		assert_int_equal(write(caller->report, caller->key, sizeof caller->key),
		                 sizeof caller->key);
	return NULL;
}

static void start(struct caller *caller)
{
	assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
}

static struct caller adds(struct stage *stage, const char *key, int row, int amount)
{
	struct caller caller = {.stage = stage, .tenant = "t", .operation = "add"};
	snprintf(caller.key, sizeof caller.key, "%s", key);
	snprintf(caller.payload, sizeof caller.payload, "{\"lane\":\"l\",\"row\":%d,\"amount\":%d}",
	         row, amount);
	return caller;
}

/* The first goes ahead and is held until all others wait; they share what comes next. */
static void play(struct stage *stage, struct caller *callers, size_t count)
{
	stage->wanted = count - 1;
	stage->held = false;
	start(&callers[0]);
	while (!stage->held)
		sched_yield();
	for (size_t i = 1; i < count; i++) {
		start(&callers[i]);
		/* In this order, so that who is whose neighbour does not change. */
		while (i < stage->wanted && group_waiting(stage->ibid->ledger->group) < i)
			sched_yield();
	}
	for (size_t i = 0; i < count; i++)
		pthread_join(callers[i].thread, NULL);
}

static void expect(const struct caller *caller, const char *said, const char *reason)
{
	if (caller->code || strcmp(caller->said, said) != 0 || strcmp(caller->reason, reason) != 0)
		fail_msg("%s %s: %s %s %s", caller->key, caller->payload, caller->said, caller->reason,
		         caller->code ? caller->err.text : "");
}

/* ---- Sharing -------------------------------------------------------------------------------- */

enum { MANY = 20 };

static void make_many(struct stage *stage, struct caller *callers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char key[32];
		snprintf(key, sizeof key, "k-%zu", i);
		callers[i] = adds(stage, key, (int)i % 7 + 1, 1);
	}
}

static void those_who_wait_share_one_transaction(void **state)
{
	(void)state;
	struct stage stage = {0};
	struct caller callers[MANY];
	stage_open(&stage);
	make_many(&stage, callers, MANY);
	play(&stage, callers, MANY);
	for (size_t i = 0; i < MANY; i++)
		expect(&callers[i], "executed 201", "");
	assert_int_equal(stage.singles, 1);
	assert_int_equal(stage.groups, 1);
	assert_effects(MANY);
	/* Again, all together: told by one look. */
	stage.groups = stage.singles = 0;
	play(&stage, callers, MANY);
	for (size_t i = 0; i < MANY; i++)
		expect(&callers[i], "replayed executed 201", "");
	assert_int_equal(stage.singles, 1);
	assert_int_equal(stage.groups, 1);
	assert_effects(MANY);
	ibid_close(stage.ibid);
}

static void a_lone_caller_goes_ahead_at_once(void **state)
{
	(void)state;
	struct stage stage = {0};
	stage_open(&stage);
	for (int i = 0; i < 5; i++) {
		char key[32];
		snprintf(key, sizeof key, "k-%d", i);
		struct caller caller = adds(&stage, key, 1, 1);
		call(&caller);
		expect(&caller, "executed 201", "");
	}
	assert_int_equal(stage.groups, 0);
	assert_int_equal(stage.singles, 5);
	assert_effects(5);
	ibid_close(stage.ibid);
}

/* Otherwise it would be told of a row that is not committed yet. */
static void a_twin_waits_for_the_commit(void **state) /* I10 */
{
	(void)state;
	struct stage stage = {0};
	struct caller callers[3];
	stage_open(&stage);
	make_many(&stage, callers, 3);
	memcpy(callers[2].key, callers[1].key, sizeof callers[2].key);
	memcpy(callers[2].payload, callers[1].payload, sizeof callers[2].payload);
	play(&stage, callers, 3);
	expect(&callers[1], "executed 201", "");
	expect(&callers[2], "replayed executed 201", "");
	assert_int_equal(stage.groups, 0);
	assert_int_equal(stage.singles, 3);
	assert_effects(2);
	ibid_close(stage.ibid);
}

/* On PostgreSQL the order of row locks matters, and a contract must say what it contends for. */
static void without_serialize_by_only_sqlite_shares(void **state)
{
	(void)state;
	struct stage stage = {0};
	struct caller callers[MANY];
	stage_open(&stage);
	make_many(&stage, callers, MANY);
	for (size_t i = 0; i < MANY; i++) {
		callers[i].operation = "add-cold";
		start(&callers[i]);
	}
	for (size_t i = 0; i < MANY; i++)
		pthread_join(callers[i].thread, NULL);
	for (size_t i = 0; i < MANY; i++)
		expect(&callers[i], "executed 201", "");
	assert_true(bed.kind == BED_SQLITE || stage.groups == 0);
	assert_effects(MANY);
	ibid_close(stage.ibid);
}

/* ---- Neighbours ----------------------------------------------------------------------------- */

static void neighbours_do_not_touch_each_other(void **state)
{
	(void)state;
	struct stage stage = {0};
	stage_open(&stage);
	struct caller callers[] = {
	    adds(&stage, "first", 1, 1),
	    adds(&stage, "plain-1", 1, 1),
	    adds(&stage, "rejected", 1, -1),
	    adds(&stage, "plain-2", 2, 2),
	    adds(&stage, "failing", 1, 999),
	    adds(&stage, "plain-3", 1, 3),
	    adds(&stage, "orphan", 1, 13), /* its parent is missing when it commits */
	    adds(&stage, "late-parent", 1, 14),
	    adds(&stage, "plain-1", 1, 1), /* a duplicate of a neighbour */
	    adds(&stage, "numbered", 1, 5),
	    adds(&stage, "numbered-too", 1, 6), /* the same business fact */
	    adds(&stage, "invalid", 1, 1001),   /* refused before it waits for anything: not counted */
	    adds(&stage, "plain-4", 1, 4),
	};
	enum { COUNT = sizeof callers / sizeof *callers };
	const char *numbered = "{\"lane\":\"l\",\"row\":1,\"amount\":5,\"no\":\"n-1\"}";
	snprintf(callers[9].payload, sizeof callers[9].payload, "%s", numbered);
	snprintf(callers[10].payload, sizeof callers[10].payload, "%s", numbered);
	struct caller invalid = callers[11];
	callers[11] = callers[12];
	play(&stage, callers, COUNT - 1);
	call(&invalid);
	expect(&invalid, "rejected 422", "INVALID_PAYLOAD");
	static const struct {
		const char *said, *reason;
	} expected[] = {
	    {"executed 201", ""},
	    {"executed 201", ""},
	    {"rejected 422", "NEGATIVE"},
	    {"executed 201", ""},
	    {"failed 500", "HANDLER_FAILED"},
	    {"executed 201", ""},
	    {"failed 500", "HANDLER_FAILED"},
	    {"executed 201", ""},
	    {"replayed executed 201", ""},
	    {"executed 201", ""},
	    {"linked 200", ""},
	    {"executed 201", ""},
	};
	/* Of two with the same fact either may be the first, where both ran alone in the end. */
	if (strcmp(callers[9].said, "linked 200") == 0) {
		struct caller linked = callers[9];
		callers[9] = callers[10];
		callers[10] = linked;
	}
	for (size_t i = 0; i < COUNT - 1; i++)
		expect(&callers[i], expected[i].said, expected[i].reason);
	assert_true(stage.groups >= 1);
	assert_int_equal(rows("entry"), 7);
	assert_int_equal(bed_number(&bed, "select sum(n) from hot"), 1 + 1 + 2 + 3 + 14 + 5 + 4);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event"), 7);
	assert_int_equal(rows("ibid.audit"), 8); /* and that of the link */
	ibid_close(stage.ibid);
}

/* It is run alone, and after its neighbour, which made what it misses: in one transaction, nobody
 * would have noticed. */
static void what_a_member_leaves_for_the_commit_is_not_healed_by_a_neighbour(void **state)
{
	(void)state;
	struct stage stage = {0};
	struct caller callers[] = {
	    adds(&stage, "first", 1, 1),
	    adds(&stage, "orphan", 1, 13),
	    adds(&stage, "healer", 1, 15),
	    adds(&stage, "plain", 1, 1),
	};
	enum { COUNT = sizeof callers / sizeof *callers };
	stage_open(&stage);
	play(&stage, callers, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		expect(&callers[i], "executed 201", "");
	assert_int_equal(stage.groups, 1);
	assert_int_equal(stage.singles, 2);
	assert_effects(COUNT);
	ibid_close(stage.ibid);
}

/* A name that two constraints share, of which one can't be put off; and a schema that is closed to
 * the role that ibid runs as. */
static void constraints_of_others_do_not_keep_a_group_apart(void **state)
{
	(void)state;
	struct stage stage = {0};
	struct caller callers[MANY];
	bed_exec(&bed, "create table one (n int, constraint alike unique (n) deferrable initially "
	               "deferred)");
	bed_exec(&bed, "create table two (n int, constraint alike check (n > 0))");
	bed_exec(&bed, "create schema closed");
	bed_exec(&bed, "create table closed.one (n int primary key deferrable initially deferred)");
	bed_exec(&bed, "grant select, insert, update on hot, parent, entry to ibid_service");
	bed_exec(&bed, "alter database \"%s\" set role = ibid_service", bed.database);
	stage_open(&stage);
	make_many(&stage, callers, MANY);
	callers[MANY - 1] = adds(&stage, "late-parent", 1, 14); /* its own are put off as ever */
	play(&stage, callers, MANY);
	for (size_t i = 0; i < MANY; i++)
		expect(&callers[i], "executed 201", "");
	assert_int_equal(stage.singles, 1);
	assert_int_equal(stage.lost, 0);
	assert_effects(MANY);
	ibid_close(stage.ibid);
}

/* SET LOCAL would hold for all who come after it in the transaction. */
static void what_a_member_sets_does_not_reach_its_neighbours(void **state)
{
	(void)state;
	struct stage stage = {0};
	struct caller callers[] = {
	    adds(&stage, "first", 1, 1),   adds(&stage, "plain-1", 1, 1), adds(&stage, "sets", 1, 1),
	    adds(&stage, "plain-2", 2, 1), adds(&stage, "plain-3", 3, 1),
	};
	enum { COUNT = sizeof callers / sizeof *callers };
	callers[2].operation = "elsewhere";
	stage_open(&stage);
	play(&stage, callers, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		expect(&callers[i], i == 2 ? "executed 200" : "executed 201", "");
	assert_int_equal(stage.groups, 1);
	const char *elsewhere = bed.kind == BED_SQLITE ? "elsewhere_hot" : "elsewhere.hot";
	assert_int_equal(bed_number(&bed, "select sum(n) from %s", elsewhere), 1);
	assert_int_equal(bed_number(&bed, "select sum(n) from hot"), COUNT - 1);
	ibid_close(stage.ibid);
}

/* Members that emit, several times and for one aggregate. */
static struct caller tells(struct stage *stage, const char *key, int amount)
{
	struct caller caller = adds(stage, key, 1, amount);
	caller.operation = "tell";
	return caller;
}

static void assert_stream(int64_t events)
{
	const char *stream = "from ibid.event where aggregatetype = 'stream'";
	assert_int_equal(bed_number(&bed, "select count(*) %s", stream), events);
	assert_int_equal(bed_number(&bed, "select count(distinct version) %s", stream), events);
	assert_int_equal(bed_number(&bed, "select coalesce(max(version), 0) %s", stream), events);
	assert_int_equal(
	    bed_number(&bed,
	               "select coalesce(max(version), 0) from ibid.aggregate where type = 'stream'"),
	    events);
	assert_int_equal(
	    bed_number(&bed, "select count(*) %s and payload like '%%quote__, a {brace}%%'", stream),
	    events);
	/* In the order in which each command emitted them. */
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from (select command_id from ibid.event "
	                            "group by command_id having max(ordinal) <> count(*)) as odd"),
	                 0);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.event a join ibid.event b on a.command_id = "
	                     "b.command_id and a.aggregatetype = b.aggregatetype and a.ordinal < "
	                     "b.ordinal and a.version >= b.version"),
	    0);
}

static void events_of_a_group_are_each_commands_own(void **state) /* I1 */
{
	(void)state;
	struct stage stage = {0};
	struct caller callers[MANY];
	int64_t events = 0;
	for (size_t i = 0; i < MANY; i++) {
		char key[32];
		snprintf(key, sizeof key, "k-%zu", i);
		callers[i] = tells(&stage, key, (int)i % 3 + 1);
		events += (int)i % 3 + 1;
	}
	stage_open(&stage);
	play(&stage, callers, MANY);
	for (size_t i = 0; i < MANY; i++)
		expect(&callers[i], "executed 201", "");
	assert_int_equal(stage.singles, 1);
	assert_int_equal(stage.groups, 1);
	assert_int_equal(bed_number(&bed, "select count(*) from entry"), MANY);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event where type = 'Added' and "
	                                  "payload like '%%plain%%' and version = 1"),
	                 MANY);
	assert_stream(events);
	ibid_close(stage.ibid);
}

static void an_event_that_is_no_good_is_its_commands_own_failure(void **state)
{
	(void)state;
	struct stage stage = {0};
	struct caller callers[] = {
	    tells(&stage, "first", 1),   tells(&stage, "good-1", 2), tells(&stage, "undeclared", 7),
	    adds(&stage, "other", 2, 1), tells(&stage, "good-2", 3), tells(&stage, "no-json", 9),
	    tells(&stage, "good-3", 1),
	};
	enum { COUNT = sizeof callers / sizeof *callers };
	stage_open(&stage);
	play(&stage, callers, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		expect(&callers[i], i == 2 || i == 5 ? "failed 500" : "executed 201",
		       i == 2 || i == 5 ? "HANDLER_FAILED" : "");
	assert_int_equal(bed_number(&bed, "select count(*) from entry"), COUNT - 2);
	assert_stream(1 + 2 + 3 + 1);
	ibid_close(stage.ibid);
}

/* C01: what it must hold is looked at in the process, and who does not hold to it goes alone. */
static void an_event_that_violates_its_contract_is_its_commands_own_failure(void **state)
{
	static const char *const kept[] = {"add.yaml", NULL};
	(void)state;
	struct stage stage = {0};
	struct caller callers[] = {
	    adds(&stage, "first", 1, 1),    adds(&stage, "good-1", 2, 2),
	    adds(&stage, "long-1", 3, 500), adds(&stage, "good-2", 4, 3),
	    adds(&stage, "long-2", 5, 501), adds(&stage, "good-3", 6, 4),
	};
	enum { COUNT = sizeof callers / sizeof *callers };
	bed_keep_contracts(&bed, kept);
	bed_write(&bed, "added.yaml",
	          "event: Added\nversion: 1\nowner: tests\ntopic: tests.added\naggregate: entry\n"
	          "partition_key: /amount\nrequired: [/amount]\nmax_bytes: 13\n"
	          "order: aggregate-version\ndeliver_to: []\n"
	          "on_parked: { owner: tests, severity: low, sla: 1h, skip_needs_approval: no }\n");
	bed_init(&bed);
	stage_open(&stage);
	play(&stage, callers, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		expect(&callers[i], i == 2 || i == 4 ? "failed 500" : "executed 201",
		       i == 2 || i == 4 ? "HANDLER_FAILED" : "");
	assert_effects(COUNT - 2);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event join entry on "
	                                  "cast(entry.command_id as text) = aggregateid where "
	                                  "topic = 'tests.added' and partition_key = "
	                                  "cast(entry.amount as text) and headers = "
	                                  "'{\"event_version\":\"1\"}'"),
	                 COUNT - 2);
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.command where state = 'FAILED' and "
	                            "text like '%%event Added version 1: its payload has %%'"),
	                 2);
	ibid_close(stage.ibid);
}

static void write_event(const char *type, const char *aggregate, const char *topic)
{
	char file[32], text[400];
	snprintf(file, sizeof file, "%s.yaml", type);
	snprintf(text, sizeof text,
	         "event: %s\nversion: 1\nowner: tests\ntopic: %s\naggregate: %s\n"
	         "partition_key: aggregate_id\nrequired: []\nmax_bytes: 1000\n"
	         "order: aggregate-version\ndeliver_to: []\n"
	         "on_parked: { owner: tests, severity: low, sla: 1h, skip_needs_approval: no }\n",
	         type, topic, aggregate);
	bed_write(&bed, file, text);
}

/* By which a relay knows that an event came before its predecessor. */
static void sent_events_of_a_group_name_the_transaction_of_their_predecessor(void **state) /* I5 */
{
	static const char *const kept[] = {"tell.yaml", NULL};
	(void)state;
	struct stage stage = {0};
	struct caller callers[MANY];
	int64_t events = 0;
	bed_keep_contracts(&bed, kept);
	write_event("Told", "stream", "tests.told");
	write_event("Added", "entry", "tests.added");
	bed_init(&bed);
	stage_open(&stage);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < MANY; i++) {
			char key[32];
			snprintf(key, sizeof key, "k-%d-%zu", round, i);
			callers[i] = tells(&stage, key, (int)i % 3 + 1);
			events += (int)i % 3 + 1;
		}
		play(&stage, callers, MANY);
		for (size_t i = 0; i < MANY; i++)
			expect(&callers[i], "executed 201", "");
	}
	assert_int_equal(stage.groups, 2);
	assert_stream(events);
	assert_int_equal(
	    bed_number(&bed, "select count(*) from ibid.event e join ibid.event before on "
	                     "before.aggregateid = e.aggregateid and before.version = e.version - 1 "
	                     "where e.topic = 'tests.told' and before.topic = 'tests.told' and "
	                     "e.follows = before.xid"),
	    events - 1);
	assert_int_equal(bed_number(&bed, "select count(*) from ibid.event where topic = 'tests.told' "
	                                  "and follows is null and version = 1"),
	                 1);
	ibid_close(stage.ibid);
}

/* What is hidden in a trigger can't be told: its command runs alone, and its neighbours do not. */
static void an_emit_that_a_trigger_hides_is_its_commands_own(void **state)
{
	(void)state;
	struct stage stage = {0};
	struct caller callers[] = {
	    tells(&stage, "first", 1),    tells(&stage, "plain-1", 2), tells(&stage, "hides", 8),
	    tells(&stage, "swallows", 6), tells(&stage, "plain-2", 3), adds(&stage, "other", 2, 1),
	};
	enum { COUNT = sizeof callers / sizeof *callers };
	bed_exec(&bed, "create function hide() returns trigger language plpgsql as $$ begin perform "
	               "ibid.emit('hidden', new.command_id::text, 'Added', '{}'); return new; end $$; "
	               "create trigger hide before insert on entry for each row when (new.amount = 8) "
	               "execute function hide()");
	/* Where the emit fails, its event would be missing, and nobody told. */
	bed_exec(&bed, "create function swallow() returns trigger language plpgsql as $$ begin begin "
	               "perform ibid.emit('hidden', new.command_id::text, 'Added', '{}'); exception "
	               "when others then null; end; return new; end $$; create trigger swallow before "
	               "insert on entry for each row when (new.amount = 6) execute function swallow()");
	stage_open(&stage);
	play(&stage, callers, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		expect(&callers[i], "executed 201", "");
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.event e join ibid.command c on c.id "
	                            "= e.command_id where c.key = 'hides'"),
	                 1 + 8 + 1);
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.event e join ibid.command c on c.id "
	                            "= e.command_id where c.key = 'swallows'"),
	                 1 + 6 + 1);
	assert_stream(1 + 2 + 8 + 6 + 3);
	ibid_close(stage.ibid);
}

/* A script that ends the transaction, or tries to, by the only ways that its engine leaves open. */
/* What is kept of a command's trace, in its audit entry and its event; "" for none. */
static bool has_trace(const char *key, const char *traceparent, const char *tracestate)
{
	return bed_number(
	           &bed,
	           "select count(*) from ibid.command c join ibid.audit a on a.tenant = "
	           "c.tenant and a.id = c.id join ibid.event e on e.tenant = c.tenant and "
	           "e.command_id = c.id where c.key = '%s' and c.traceparent is null and "
	           "coalesce(a.traceparent, '') = '%s' and coalesce(a.tracestate, '') = '%s' and "
	           "coalesce(e.traceparent, '') = '%s' and coalesce(e.tracestate, '') = '%s'",
	           key, traceparent, tracestate, traceparent, tracestate) == 1;
}

static void a_trace_does_not_reach_the_neighbours(void **state) /* K02 */
{
	(void)state;
	static const char one[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
	static const char two[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
	struct stage stage = {0};
	stage_open(&stage);
	struct caller callers[] = {
	    adds(&stage, "first", 1, 1),     adds(&stage, "plain-1", 1, 1),
	    adds(&stage, "one", 2, 1),       adds(&stage, "plain-2", 1, 1),
	    adds(&stage, "two", 2, 1),       adds(&stage, "one-again", 2, 1),
	    adds(&stage, "failing", 1, 999), adds(&stage, "plain-3", 1, 1),
	};
	enum { COUNT = sizeof callers / sizeof *callers };
	callers[0].traceparent = callers[4].traceparent = two;
	callers[2].traceparent = callers[5].traceparent = callers[6].traceparent = one;
	callers[2].tracestate = callers[6].tracestate = "a=\"1\\,b=2";
	play(&stage, callers, COUNT);
	assert_true(stage.groups >= 1);
	for (size_t i = 0; i < COUNT; i++)
		expect(&callers[i], i == 6 ? "failed 500" : "executed 201", i == 6 ? "HANDLER_FAILED" : "");
	assert_true(has_trace("first", two, ""));
	assert_true(has_trace("one", one, "a=\"1\\,b=2"));
	assert_true(has_trace("two", two, ""));
	assert_true(has_trace("one-again", one, ""));
	assert_true(has_trace("plain-1", "", ""));
	assert_true(has_trace("plain-2", "", ""));
	assert_true(has_trace("plain-3", "", ""));
	assert_int_equal(bed_number(&bed,
	                            "select count(*) from ibid.command where key = 'failing' and "
	                            "traceparent = '%s' and tracestate = 'a=\"1\\,b=2'",
	                            one),
	                 1);
	ibid_close(stage.ibid);
}

/* On one connection, one after the other, by the short way where there is one. */
static void a_trace_ends_with_its_command(void **state) /* K02 */
{
	(void)state;
	static const char one[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
	static const char *const operations[] = {"add", "add-cold"};
	struct stage stage = {0};
	stage_open(&stage);
	for (size_t i = 0; i < 2; i++) {
		for (int traced = 1; traced >= 0; traced--) {
			char key[32];
			snprintf(key, sizeof key, "%s-%d", operations[i], traced);
			struct caller caller = adds(&stage, key, 1, 1);
			caller.operation = operations[i];
			caller.traceparent = traced ? one : NULL;
			caller.tracestate = traced ? "a=1" : "";
			call(&caller);
			expect(&caller, "executed 201", "");
			assert_true(has_trace(key, traced ? one : "", traced ? "a=1" : ""));
			caller.traceparent = caller.tracestate = NULL; /* a retry changes nothing */
			call(&caller);
			expect(&caller, "replayed executed 201", "");
			assert_true(has_trace(key, traced ? one : "", traced ? "a=1" : ""));
		}
	}
	assert_int_equal(stage.groups, 0);
	ibid_close(stage.ibid);
}

static void a_member_that_ends_the_transaction_is_the_only_one_to_fail(void **state)
{
	(void)state;
	struct stage stage = {0};
	struct caller callers[] = {
	    adds(&stage, "first", 1, 1),   adds(&stage, "plain-1", 1, 1), adds(&stage, "end", 1, 1),
	    adds(&stage, "plain-2", 2, 1), adds(&stage, "plain-3", 3, 1),
	};
	enum { COUNT = sizeof callers / sizeof *callers };
	callers[2].operation = "end-it";
	stage_open(&stage);
	play(&stage, callers, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		expect(&callers[i], i == 2 ? "failed 500" : "executed 201", i == 2 ? "HANDLER_FAILED" : "");
	assert_true(stage.groups >= 1);
	assert_effects(COUNT - 1);
	ibid_close(stage.ibid);
}

/* What the SQL API refuses in a script is that script's failure: the transaction was rolled back,
 * and nothing is unknown. SQLite has no such functions; its script misuses one that it has. */
static void a_member_that_leaves_a_command_of_its_own_open_is_the_only_one_to_fail(void **state)
{
	(void)state;
	struct stage stage = {0};
	struct caller callers[] = {
	    adds(&stage, "first", 1, 1),   adds(&stage, "plain-1", 1, 1), adds(&stage, "nested", 1, 1),
	    adds(&stage, "plain-2", 2, 1), adds(&stage, "plain-3", 3, 1),
	};
	enum { COUNT = sizeof callers / sizeof *callers };
	callers[2].operation = "nested";
	stage_open(&stage);
	play(&stage, callers, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		expect(&callers[i], i == 2 ? "failed 500" : "executed 201", i == 2 ? "HANDLER_FAILED" : "");
	assert_true(stage.groups >= 1);
	assert_int_equal(rows("ibid.exception"), 0);
	assert_effects(COUNT - 1);
	ibid_close(stage.ibid);
}

/* ---- Durability ----------------------------------------------------------------------------- */

static void a_lost_commit_of_a_group_is_answered_for_each(void **state) /* I7 */
{
	(void)state;
	fault_path("group");
	for (int kind = FAULT_FAIL; kind <= FAULT_LOSE; kind++) {
		struct stage probe = {.fault = {.kind = (enum fault_kind)kind}};
		stage_open(&probe);
		ibid_close(probe.ibid);
		unsigned opening = probe.fault.points;
		bool fired = true;
		for (unsigned n = 1; fired; n++) {
			struct stage stage = {.fault = {.kind = (enum fault_kind)kind, .at = opening + n}};
			struct caller callers[6];
			stage_open(&stage);
			for (size_t i = 0; i < 6; i++) {
				char key[32];
				snprintf(key, sizeof key, "k-%d-%u-%zu", kind, n, i);
				callers[i] = adds(&stage, key, 1, 1);
			}
			play(&stage, callers, 6);
			for (size_t i = 0; i < 6; i++) {
				/* What a real caller does after an error: the same again. */
				bool again = callers[i].code;
				for (int turn = 0; turn < 3 && callers[i].code; turn++)
					call(&callers[i]);
				/* The server may still run what the lost connection had sent. */
				for (; strcmp(callers[i].said, "in_progress 409") == 0; again = true)
					call(&callers[i]);
				const char *said = again ? "replayed executed 201" : "executed 201";
				if (strcmp(callers[i].said, "executed 201") != 0)
					expect(&callers[i], said, "");
			}
			ibid_close(stage.ibid);
			fired = stage.fault.fired;
			assert_int_equal(rows("entry"), bed_number(&bed, "select count(*) from ibid.command"));
		}
	}
	assert_effects(rows("entry"));
}

static void share_and_die(unsigned at, int report)
{
	struct stage stage = {.fault = {.kind = FAULT_KILL, .at = at}};
	struct caller callers[6];
	stage_open(&stage);
	for (size_t i = 0; i < 6; i++) {
		char key[32];
		snprintf(key, sizeof key, "k-%u-%zu", at, i);
		callers[i] = adds(&stage, key, 1, 1);
		callers[i].report = report;
	}
	play(&stage, callers, 6);
	ibid_close(stage.ibid);
}

static void
a_group_killed_at_any_statement_has_answered_only_what_is_durable(void **state) /* I10 */
{
	(void)state;
	int64_t kills = 0;
	bool dead = true;
	fault_path("group");
	for (unsigned at = 1; dead; at++) {
		int report[2], status;
		char key[48];
		assert_int_equal(pipe(report), 0);
		int64_t start = bed_mark(&bed);
		pid_t child = fork();
		if (child == 0) {
			close(report[0]);
			share_and_die(at, report[1]);
			_exit(0);
		}
		close(report[1]);
		assert_int_equal(waitpid(child, &status, 0), child);
		bed_settle_since(&bed, start);
		dead = WIFSIGNALED(status);
		kills += dead;
		assert_int_equal(dead ? WTERMSIG(status) : WEXITSTATUS(status), dead ? SIGKILL : 0);
		while (read(report[0], key, sizeof key) == sizeof key)
			assert_int_equal(bed_number(&bed,
			                            "select count(*) from ibid.command where key = '%s' "
			                            "and state = 'COMPLETED'",
			                            key),
			                 1);
		close(report[0]);
		/* And whoever was not answered sends it again. */
		struct stage stage = {0};
		stage_open(&stage);
		for (size_t i = 0; i < 6; i++) {
			snprintf(key, sizeof key, "k-%u-%zu", at, i);
			struct caller caller = adds(&stage, key, 1, 1);
			/* The server may still hold the dead client's locks. */
			do
				call(&caller);
			while (!caller.code && strncmp(caller.said, "in_progress", 11) == 0);
			assert_non_null(strstr(caller.said, "executed 201"));
		}
		ibid_close(stage.ibid);
		assert_effects(rows("ibid.command"));
	}
	assert_true(kills > 8);
}

/* ---- Fairness ------------------------------------------------------------------------------- */

static _Atomic int64_t quiet_done; /* what the quiet tenant had when the second group began */

static void look_for_quiet(struct stage *stage, int number)
{
	(void)stage;
	if (number == 2)
		quiet_done = bed_number(&bed, "select count(*) from ibid.command where tenant = 'quiet'");
}

static void a_loud_tenant_does_not_keep_a_quiet_one_waiting(void **state) /* K10 */
{
	(void)state;
	enum { LOUD = 2 * GROUP_MAX, ALL = LOUD + 2 };
	struct stage stage = {.at_group = look_for_quiet};
	static struct caller callers[ALL];
	stage_open(&stage);
	quiet_done = -1;
	make_many(&stage, callers, ALL);
	for (size_t i = 0; i < ALL; i++)
		callers[i].tenant = i < LOUD ? "loud" : "quiet"; /* the last to come */
	if (bed.kind == BED_POSTGRES) /* lanes are chosen by tenant, too: put both into one */
		for (unsigned n = 0; n < 64; n++) {
			char lane[8];
			snprintf(lane, sizeof lane, "q%u", n);
			const char *loud = "l", *quiet = lane;
			if (group_contention("loud", &loud, 1) % GROUP_LANES ==
			    group_contention("quiet", &quiet, 1) % GROUP_LANES) {
				for (size_t i = LOUD; i < ALL; i++)
					snprintf(callers[i].payload, sizeof callers[i].payload,
					         "{\"lane\":\"%s\",\"row\":1,\"amount\":1}", lane);
				break;
			}
		}
	play(&stage, callers, ALL);
	for (size_t i = 0; i < ALL; i++)
		expect(&callers[i], "executed 201", "");
	assert_true(stage.groups >= 2);
	assert_int_equal(quiet_done, 2); /* although a hundred came before */
	assert_effects(ALL);
	ibid_close(stage.ibid);
}

static void a_full_queue_says_try_later_and_loses_nothing(void **state) /* K10 */
{
	(void)state;
	enum { QUEUE = 8, ALL = 1 + QUEUE / 2 + 1 };
	struct stage stage = {.wanted = 1000000};
	struct caller callers[ALL];
	stage_open_with(&stage, QUEUE);
	make_many(&stage, callers, ALL);
	start(&callers[0]);
	while (!stage.held)
		sched_yield();
	for (size_t i = 1; i + 1 < ALL; i++) {
		start(&callers[i]);
		while (group_waiting(stage.ibid->ledger->group) < i)
			sched_yield();
	}
	/* Half of the queue is one tenant's; another one still finds room, if in the same lane. */
	call(&callers[ALL - 1]);
	assert_int_equal(callers[ALL - 1].code, IBID_BUSY);
	assert_int_equal(callers[ALL - 1].err.next, IBID_NEXT_LATER);
	assert_non_null(strstr(callers[ALL - 1].err.text, "nothing was done"));
	stage.wanted = 0;
	for (size_t i = 0; i + 1 < ALL; i++) {
		pthread_join(callers[i].thread, NULL);
		expect(&callers[i], "executed 201", "");
	}
	assert_effects(ALL - 1);
	call(&callers[ALL - 1]);
	expect(&callers[ALL - 1], "executed 201", "");
	assert_effects(ALL);
	ibid_close(stage.ibid);
}

/* ---- Contention ----------------------------------------------------------------------------- */

enum { CONTENDERS = 32, EACH = 40 };

struct contender {
	pthread_t thread;
	struct stage *stage;
	const char *operation;
	unsigned number;
};

static void *contend(void *user)
{
	struct contender *contender = user;
	unsigned random = contender->number * 2654435761U;
	for (unsigned i = 0; i < EACH; i++) {
		char key[48];
		random = random * 1664525U + 1013904223U;
		snprintf(key, sizeof key, "%s-%u-%u-%d", contender->operation, contender->number, i,
		         (int)getpid());
		bool apart = strcmp(contender->operation, "add-free") == 0;
		int row = apart ? (int)contender->number : (int)(random >> 16) % 200;
		struct caller caller = adds(contender->stage, key, row + 1, 1);
		caller.operation = contender->operation;
		call(&caller);
		expect(&caller, "executed 201", "");
	}
	return NULL;
}

static void contend_all(struct stage *stage, const char *operation)
{
	struct contender contenders[CONTENDERS];
	for (unsigned i = 0; i < CONTENDERS; i++) {
		contenders[i] = (struct contender){.stage = stage, .operation = operation, .number = i};
		assert_int_equal(pthread_create(&contenders[i].thread, NULL, contend, &contenders[i]), 0);
	}
	for (unsigned i = 0; i < CONTENDERS; i++)
		pthread_join(contenders[i].thread, NULL);
}

static int64_t deadlocks(void)
{
	if (bed.kind == BED_SQLITE)
		return 0;
	return bed_number(&bed, "select deadlocks from pg_stat_database where datname = "
	                        "current_database()");
}

/* So that the server finds one before a group stops waiting. */
static void find_deadlocks_soon(void)
{
	if (bed.kind == BED_POSTGRES)
		bed_exec(&bed,
		         "do $$ begin execute format('alter database %%I set deadlock_timeout = ''10ms''',"
		         " current_database()); end $$");
}

static void commands_that_name_their_row_share_without_deadlock(void **state)
{
	(void)state;
	static const char *const operations[] = {"add-hot", "add-cold"};
	find_deadlocks_soon();
	for (size_t i = 0; i < 2; i++) {
		struct stage stage = {.held = true};
		int64_t before = deadlocks();
		stage_open(&stage);
		contend_all(&stage, operations[i]);
		assert_int_equal(deadlocks(), before);
		assert_int_equal(stage.lost, stage.busy); /* where a table grows, others wait */
		assert_effects((int64_t)(i + 1) * CONTENDERS * EACH);
		assert_true(i > 0 || stage.groups > 0);
		ibid_close(stage.ibid);
	}
}

static void who_contends_for_nothing_shares_too(void **state)
{
	(void)state;
	struct stage stage = {.held = true};
	stage_open(&stage);
	contend_all(&stage, "add-free");
	assert_true(stage.groups > 0);
	assert_effects((int64_t)CONTENDERS * EACH);
	ibid_close(stage.ibid);
}

static void one_lane_has_one_group_at_a_time(void **state)
{
	(void)state;
	struct stage stage = {.held = true};
	stage_open_by(&stage, "lanes=1", 0);
	contend_all(&stage, "add-hot");
	assert_int_equal(stage.most, 1);
	assert_effects((int64_t)CONTENDERS * EACH);
	ibid_close(stage.ibid);
}

/* Two processes lead groups over the same rows: they lock them in the same order. */
static void groups_of_two_processes_do_not_deadlock(void **state)
{
	(void)state;
	int64_t before = deadlocks();
	pid_t children[2];
	find_deadlocks_soon();
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			struct stage stage = {.held = true};
			stage_open(&stage);
			contend_all(&stage, "add-hot");
			ibid_close(stage.ibid);
			_exit(stage.lost != stage.busy); /* the server counts its deadlocks later */
		}
	}
	for (int i = 0; i < 2; i++) {
		int status;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(deadlocks(), before);
	assert_effects(2 * CONTENDERS * EACH);
}

/* ---- The same keys -------------------------------------------------------------------------- */

static void twins_from_two_processes_and_many_threads_have_one_effect(void **state) /* B12 */
{
	(void)state;
	enum { KEYS = 5, COPIES = 6 };
	pid_t children[2];
	for (int process = 0; process < 2; process++) {
		children[process] = fork();
		if (children[process])
			continue;
		struct stage stage = {.held = true};
		struct caller callers[KEYS * COPIES];
		stage_open(&stage);
		for (size_t i = 0; i < KEYS * COPIES; i++) {
			char key[32];
			snprintf(key, sizeof key, "k-%zu", i % KEYS);
			callers[i] = adds(&stage, key, 1, 1);
			start(&callers[i]);
		}
		for (size_t i = 0; i < KEYS * COPIES; i++) {
			pthread_join(callers[i].thread, NULL);
			if (callers[i].code || (!strstr(callers[i].said, "executed 201") &&
			                        !strstr(callers[i].said, "in_progress")))
				_exit(1);
		}
		ibid_close(stage.ibid);
		_exit(0);
	}
	for (int i = 0; i < 2; i++) {
		int status;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_effects(KEYS);
}

/* ---- Connections ---------------------------------------------------------------------------- */

static void kill_backends(struct stage *stage, int number)
{
	(void)stage;
	(void)number;
	(void)bed_number(&bed, "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity "
	                       "where datname = current_database() and pid <> pg_backend_pid()");
}

static void play_twice(struct stage *stage)
{
	struct caller callers[MANY];
	make_many(stage, callers, MANY);
	for (int round = 0; round < 2; round++) {
		play(stage, callers, MANY);
		for (size_t i = 0; i < MANY; i++)
			expect(&callers[i], round ? "replayed executed 201" : "executed 201", "");
	}
	assert_int_equal(stage->groups, 2);
	assert_int_equal(stage->lost, 0);
	assert_effects(MANY);
}

static void a_group_that_meets_a_dead_connection_runs_on_another(void **state)
{
	(void)state;
	struct stage stage = {.at_group = kill_backends};
	stage_open(&stage);
	play_twice(&stage);
	ibid_close(stage.ibid);
}

/* Whoever makes the server hang up has company once, and then not again. */
static void who_ends_the_connection_does_not_take_the_neighbours_along(void **state)
{
	enum { COUNT = 6, BAD = 2 };
	static const char *const ends[] = {"perform pg_terminate_backend(pg_backend_pid());",
	                                   "raise exception 'lost' using errcode = '08001';"};
	(void)state;
	bed_exec(&bed, "create function lose() returns trigger language plpgsql as "
	               "'begin return new; end'");
	bed_exec(&bed, "create trigger lose before insert on entry for each row when (new.amount = 8) "
	               "execute function lose()");
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct stage stage = {0};
		struct caller callers[COUNT];
		char key[32];
		bed_exec(&bed,
		         "create or replace function lose() returns trigger language plpgsql as $$begin %s "
		         "return new; end$$",
		         ends[i]);
		stage_open(&stage);
		for (size_t k = 0; k < COUNT; k++) {
			snprintf(key, sizeof key, "k-%zu-%zu", i, k);
			callers[k] = adds(&stage, key, 1, k == BAD ? 8 : 1);
		}
		play(&stage, callers, COUNT);
		for (size_t k = 0; k < COUNT; k++)
			if (k != BAD)
				expect(&callers[k], "executed 201", "");
		assert_int_equal(stage.groups, 1);
		assert_effects((COUNT - 1) * ((int64_t)i + 1));
		ibid_close(stage.ibid);
	}
}

static void groups_need_no_prepared_statements(void **state)
{
	(void)state;
	struct stage stage = {0};
	stage_open_by(&stage, "statements=unnamed", 0);
	play_twice(&stage);
	ibid_close(stage.ibid);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    TEST(those_who_wait_share_one_transaction),
	    TEST(a_lone_caller_goes_ahead_at_once),
	    TEST(a_twin_waits_for_the_commit),
	    TEST(without_serialize_by_only_sqlite_shares),
	    TEST(neighbours_do_not_touch_each_other),
	    TEST(what_a_member_leaves_for_the_commit_is_not_healed_by_a_neighbour),
	    TEST(what_a_member_sets_does_not_reach_its_neighbours),
	    TEST(events_of_a_group_are_each_commands_own),
	    TEST(an_event_that_is_no_good_is_its_commands_own_failure),
	    TEST(an_event_that_violates_its_contract_is_its_commands_own_failure),
	    TEST(a_trace_does_not_reach_the_neighbours),
	    TEST(a_trace_ends_with_its_command),
	    TEST(a_member_that_ends_the_transaction_is_the_only_one_to_fail),
	    TEST(a_member_that_leaves_a_command_of_its_own_open_is_the_only_one_to_fail),
	    TEST(a_lost_commit_of_a_group_is_answered_for_each),
	    TEST(a_group_killed_at_any_statement_has_answered_only_what_is_durable),
	    TEST(a_loud_tenant_does_not_keep_a_quiet_one_waiting),
	    TEST(a_full_queue_says_try_later_and_loses_nothing),
	    TEST(commands_that_name_their_row_share_without_deadlock),
	    TEST(who_contends_for_nothing_shares_too),
	    TEST(one_lane_has_one_group_at_a_time),
	    TEST(groups_of_two_processes_do_not_deadlock),
	    TEST(twins_from_two_processes_and_many_threads_have_one_effect),
	};
	const struct CMUnitTest on_postgres[] = {
	    TEST(constraints_of_others_do_not_keep_a_group_apart),
	    TEST(an_emit_that_a_trigger_hides_is_its_commands_own),
	    TEST(sent_events_of_a_group_name_the_transaction_of_their_predecessor),
	    TEST(a_group_that_meets_a_dead_connection_runs_on_another),
	    TEST(groups_need_no_prepared_statements),
	    TEST(who_ends_the_connection_does_not_take_the_neighbours_along),
	};
	bed_choose(argc, argv);
	int failed = cmocka_run_group_tests_name("group", tests, NULL, NULL);
	if (bed_kind == BED_POSTGRES)
		failed += cmocka_run_group_tests_name("group, on PostgreSQL", on_postgres, NULL, NULL);
	return failed;
}
